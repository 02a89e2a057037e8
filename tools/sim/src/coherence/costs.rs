//! What takes how much processor time in FlowCC. One set for all figures.
//!
//! Posting a message and finding one are the hardware's ([`Testbed`]), and come on top of
//! what is here. Blocks are written by the NICs straight into their frames ("to avoid data copying", Concordia, section 6),
//! so no processor time goes with their size; a copy that is kept for a repeated answer is the frame itself, which its
//! bucket exchanges for an empty one (its entries point to their data, section 6).

use wire::{Endpoint, GlobalStatus, Nanos, Packet, PacketKind};

use crate::hardware::Testbed;

/// Processor times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// An access to a block that is in the cache: *the one declared calibration*. Figure 12 at 100 % locality is pure
    /// local access: 32 threads do 133 million in a second, 240 ns each.
    pub access: Nanos,
    /// From a miss to its request: a slot, a frame, the packet. The access that found the miss is paid when it is
    /// repeated with the block there.
    pub miss: Nanos,
    /// An application releases a block's lock; other calls that only send something.
    pub release: Nanos,
    /// A requester takes an answer in, publishes the block, and unlocks.
    pub answer: Nanos,
    /// A thread that found another one of its node fetching the block goes on so much after it is there.
    pub joined: Nanos,
    /// A requester takes in that the home has its copy, or that an agent has closed an event, and unlocks.
    pub closing: Nanos,
    /// A requester takes in that an unlock is done.
    pub unlocked: Nanos,
    /// A cache agent gives a copy away, or up.
    pub give: Nanos,
    /// On top of that, where the copy was modified: what a protocol takes that writes it to its home first.
    pub flush: Nanos,
    /// A home agent decides on a request, or answers with data.
    pub decide: Nanos,
    /// A home agent ends an event; takes a copy of a block; notes that an event is closed.
    pub settle: Nanos,
    /// Calls of allocators, and the shadow's messages: not counted, as dear as a home's decision.
    pub other: Nanos,
}

impl Costs {
    /// The handlers are ours: their instructions as Callgrind counted them in `examples/rack_speed.rs` (50 % reads of
    /// a shared set, entries at the homes), call and dispatch included, at one instruction a cycle of the testbed's
    /// processors: their tables are larger than the first cache level.
    pub const PAPER: Self = Self {
        access: Nanos(240),
        miss: Testbed::CONCORDIA.cycles(490),
        release: Testbed::CONCORDIA.cycles(265),
        answer: Testbed::CONCORDIA.cycles(720),
        joined: Nanos::ZERO,
        closing: Testbed::CONCORDIA.cycles(405),
        unlocked: Testbed::CONCORDIA.cycles(115),
        give: Testbed::CONCORDIA.cycles(480),
        flush: Nanos::ZERO,
        decide: Testbed::CONCORDIA.cycles(620),
        settle: Testbed::CONCORDIA.cycles(270),
        other: Testbed::CONCORDIA.cycles(620),
    };

    /// FlowCC in the place of MIND (SOSP '21), whose directory is in the switch too, but whose blades are kernels that move
    /// pages: as the locks' costs have it ([`crate::locks::Costs`]), from the same published sums. A fault takes 2 us until
    /// its request is posted and 4 us after its answer; an invalidation 1 us to take in and 4 us to unmap. A blade writes
    /// a modified page to the memory blade, where the requester then reads it: 4 us more, two trips and the page. Memory
    /// blades have no processor. What FlowCC does and MIND does not, the unlock of an entry, is off the thread's path.
    /// A thread that finds another one's fault of the same page in flight pauses for 50 us and takes its own fault then
    /// (`return_and_retry` in MIND's `fault_disagg.c`): half of that on average, after the page is there. A word that is here takes 50 ns: an atomic instruction on a line that the core has to get from another.
    pub const MIND: Self = Self {
        access: Nanos(50),
        miss: Nanos(2_000),
        answer: Nanos(4_000),
        joined: Nanos(25_000),
        give: Nanos(5_000),
        flush: Nanos(4_000),
        decide: Nanos::ZERO,
        settle: Nanos::ZERO,
        ..Self::PAPER
    };

    /// Of handling a packet where it is going.
    pub const fn handling(&self, packet: &Packet) -> Nanos {
        match (packet.to, packet.kind) {
            (Endpoint::Switch, _) => Nanos::ZERO,
            (Endpoint::Requester(_), PacketKind::Ack) => self.answer,
            (Endpoint::Requester(_), PacketKind::UnlockAck) => self.unlocked,
            (Endpoint::Requester(_), _) => self.closing,
            (Endpoint::CacheAgent(_), kind) if kind.is_request() => match packet.global_status {
                GlobalStatus::Modified => Nanos(self.give.0 + self.flush.0),
                _ => self.give,
            },
            (Endpoint::CacheAgent(_), _) => self.settle,
            (Endpoint::HomeAgent(_), PacketKind::Unlock | PacketKind::WriteBack | PacketKind::Close) => {
                self.settle
            }
            (Endpoint::HomeAgent(_), _) => self.decide,
            (Endpoint::Allocator(_) | Endpoint::Shadow(_), _) => self.other,
        }
    }
}
