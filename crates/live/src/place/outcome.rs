//! What operations come to.

use wire::{GlobalAddr, Incarnation, Refusal};

/// What was allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocated {
    /// Where.
    pub addr: GlobalAddr,
    /// The life of its home that it dies with: in another one, the address is somebody else's.
    pub life: Incarnation,
    /// Its bytes are zero already.
    pub zeroed: bool,
}

/// Why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Whoever decides about the block, or the memory, says no.
    Refused(Refusal),
    /// This node holds block locks in all slots that it has for them.
    NoSlot,
    /// The rest of the rack takes this node for dead: nothing that it does counts any more.
    Fenced,
    /// The connection to the node that was asked has failed, and nobody knows whether the operation was executed.
    Broken,
}

impl From<Refusal> for Failure {
    fn from(why: Refusal) -> Self {
        Self::Refused(why)
    }
}
