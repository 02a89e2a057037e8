//! What happens on the testbed, and the packets between the chips.

use nic::objects::{Load as Ask, Object};

use super::memory::{Agent, Sample};
use crate::hardware::Picos;

/// What goes from an RGP to an R2P2. One reply comes for each, but for a registration and an unlocking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Packet {
    /// A SABRe begins (section 5.2).
    Register { requester: u32, number: u64, object: Object },
    /// One more of its blocks (section 5.1: unrolled at the source).
    Request { requester: u32, number: u64 },
    /// One block of a plain read.
    Read { slot: u16, index: u32, block: u64 },
    /// The lock of an object, if nobody has it.
    Lock { slot: u16, block: u64 },
    /// It is given back.
    Unlock { block: u64 },
}

/// What comes back to an RCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// A block.
    Block { index: u32, holds: Sample },
    /// A block of a SABRe that is known to be torn: no data.
    Empty,
    /// The validation packet of a SABRe.
    Verdict { whole: bool },
    /// The lock is held, or somebody else has it.
    Lock { held: bool },
}

/// What somebody asked the memory for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Want {
    /// For an engine.
    Sabre { r2p2: u8, ask: Ask },
    /// A block of a plain read.
    Plain { r2p2: u8, slot: u16, index: u32 },
    /// A core's own load.
    Load { core: u8, index: u32 },
    /// A writer's request to own a block of its object.
    Own { core: u8, index: u32 },
    /// An R2P2's compare-and-swap, for a reader that wants a lock, or has it.
    Swap { r2p2: u8, slot: Option<u16> },
}

impl Want {
    pub(super) const fn agent(&self) -> Agent {
        match *self {
            Self::Sabre { r2p2, .. } | Self::Plain { r2p2, .. } | Self::Swap { r2p2, .. } => {
                Agent::R2p2(r2p2)
            }
            Self::Load { core, .. } | Self::Own { core, .. } => Agent::Core(core),
        }
    }
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A reader goes on: a new operation, or another attempt.
    Begin { slot: u16 },
    /// An RGP has a job more.
    Posted { slot: u16, what: Job },
    /// An RGP's turn to send a packet.
    Unroll { edge: u8 },
    /// A packet has passed the stages of an R2P2 in front of its table.
    Arrived { r2p2: u8, packet: Packet },
    /// An R2P2's turn to ask the memory.
    Issue { r2p2: u8 },
    /// A request is at its block's directory.
    AtBank { block: u64, want: Want },
    /// The memory answers.
    Answer { want: Want, holds: Sample },
    /// An R2P2 is told that a block is written or gone.
    Told { r2p2: u8, block: u64 },
    /// A compare-and-swap takes place; its answer is in flight for so long.
    Swapped { want: Want, block: u64, way: Picos },
    /// A reply is on the readers' chip.
    Replied { slot: u16, reply: Reply },
    /// A core has taken note of a completion.
    Completed { slot: u16 },
    /// A core has compared, stripped or computed what it must, and used the object if it is whole.
    Used { slot: u16, whole: bool },
    /// A writer has a block.
    Owned { core: u8, index: u32 },
    /// A writer goes on.
    Write { core: u8 },
}

/// What a core posts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Job {
    /// The transfer itself.
    Transfer,
    /// A lock.
    Lock,
    /// To give it back. The reader goes on to another object meanwhile.
    Unlock { block: u64 },
}
