//! What threads of a rack that runs FlowCC do, and what may still happen there.

use crate::explore::world::Fault;

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Doing {
    #[default]
    Idle,
    /// Waiting for its operation, in this slot.
    Waiting {
        slot: u8,
        turn: u8,
        /// The block that it reads has been written since: what was read before that will do, too.
        overtaken: bool,
    },
    /// Waiting for another thread's operation.
    Joining { slot: u8 },
    /// About to access a frame that is pinned for it.
    Pinned { frame: u8, turn: u8 },
    /// Holding a lock.
    Holding { slot: u8, turn: u8 },
}

/// What may still happen, beside lost packets and those that come twice.
pub(super) const PREMATURE: Fault = Fault(2);
pub(super) const ADD: Fault = Fault(3);
pub(super) const REMOVE: Fault = Fault(4);
pub(super) const PURGE: Fault = Fault(5);
