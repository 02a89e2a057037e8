//! What operations come to.

use node::{FrameId, Outcome};
use wire::{GlobalAddr, Incarnation, Refusal};

/// What became of a fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetched {
    /// The block is in this frame, pinned for the calling thread.
    Pinned(FrameId),
    /// No frame has the block, but [`super::ThreadContext::peeked`] has the words that were asked for.
    Words,
    /// The block came, but another thread was quicker: try the hit again.
    Retry,
}

impl TryFrom<Outcome> for Fetched {
    type Error = Failure;

    fn try_from(outcome: Outcome) -> Result<Self, Failure> {
        match outcome {
            Outcome::Pinned(frame) => Ok(Self::Pinned(frame)),
            Outcome::Peeked(_) => Ok(Self::Words),
            Outcome::Failed(why) => Err(why.into()),
            _ => Ok(Self::Retry),
        }
    }
}

/// What was allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocated {
    /// Where.
    pub addr: GlobalAddr,
    /// The incarnation of its home that it dies with: in another one, the address is somebody else's.
    pub incarnation: Incarnation,
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
