//! What happened in the switch, by cause. Counters decide nothing.

use wire::{PacketKind, Refusal};

use crate::pipeline::Counts;

wire::listed! {
    /// Why a packet was dropped.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Drop {
        /// Not a packet that the switch has a program for.
        PacketKind,
        /// Of another incarnation of the switch.
        Epoch,
        /// No such requester.
        Requester,
        /// The block's home is no node of the rack.
        Tag,
        /// An unlock of something that is not a request.
        Event,
        /// A migration that does not come from the block's home.
        NotHome,
        /// A request of an event that was unlocked already.
        StaleRequest,
        /// An unlock older than the last one.
        StaleUnlock,
        /// A second copy of an unlock, or of an ADD-TO-SWITCH, while the first is between its passes.
        InFlight,
    }
}

/// What a packet's way through the switch is counted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counted {
    /// It was dropped.
    Drop(Drop),
    /// It was refused.
    Refusal(Refusal),
    /// It makes a second pass.
    Resubmit,
}

const KINDS: usize = PacketKind::Refilled as usize + 1;
const REFUSALS: usize = Refusal::ALL.len() + 1;

/// Counts since the switch began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counters {
    packets: [u64; KINDS],
    drops: [u64; Drop::ALL.len()],
    refusals: [u64; REFUSALS],
    /// Passes through the pipeline. Packets that the parser drops make none.
    pub passes: u64,
    /// Packets sent through the pipeline once more.
    pub resubmits: u64,
}

impl Counters {
    pub(super) const fn new() -> Self {
        Self {
            packets: [0; KINDS],
            drops: [0; Drop::ALL.len()],
            refusals: [0; REFUSALS],
            passes: 0,
            resubmits: 0,
        }
    }

    /// Packets of a kind that came in, dropped ones included, resubmitted ones not.
    pub const fn packets(&self, kind: PacketKind) -> u64 {
        self.packets[kind as usize]
    }

    /// Packets dropped for a cause.
    pub const fn drops(&self, cause: Drop) -> u64 {
        self.drops[cause as usize]
    }

    /// Packets dropped for whatever cause.
    pub fn all_drops(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// Requests that the switch itself refused for a reason, repeated answers included.
    pub const fn refusals(&self, why: Refusal) -> u64 {
        self.refusals[why as usize]
    }

    pub(super) const fn count_packet(&mut self, kind: PacketKind) {
        self.packets[kind as usize] += 1;
    }
}

impl Counts for Counters {
    type Counted = Counted;

    #[inline]
    fn count(&mut self, what: Counted) {
        match what {
            Counted::Drop(cause) => self.drops[cause as usize] += 1,
            Counted::Refusal(why) => self.refusals[why as usize] += 1,
            Counted::Resubmit => self.resubmits += 1,
        }
    }
}
