//! What threads of a rack of locks do, and what may still happen there.

use crate::explore::world::Fault;

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Doing {
    #[default]
    Idle,
    /// Waiting until it may enter, in this of the turns that it may take.
    Waiting(u8),
    /// Inside.
    Inside(u8),
    /// Waiting for the lock's end.
    Ending,
}

/// What may still happen, beside lost packets and those that come twice.
pub(super) const PREMATURE: Fault = Fault(2);
pub(super) const CANCEL: Fault = Fault(3);
pub(super) const LEAVE: Fault = Fault(4);
pub(super) const RESTART: Fault = Fault(5);
pub(super) const VACANCY: Fault = Fault(6);
