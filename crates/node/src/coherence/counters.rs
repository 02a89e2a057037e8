//! What a node's machines count. Nothing is lost silently: whatever is dropped is counted by cause.

use wire::{PacketKind, Refusal};

wire::listed! {
    /// Why a packet was dropped.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(u8)]
    pub enum Drop {
        /// Sent in another incarnation of the switch.
        WrongEpoch,
        /// Sent in a former incarnation of the requester's node.
        FormerIncarnation,
        /// About an event that is over, or that the receiver has executed a later one of.
        Stale,
        /// A duplicate of something that is still being worked on.
        Duplicate,
        /// A request that names a block which this node does not have in the state that it names.
        NoSuchCopy,
        /// Not something that this machine is ever sent, or about a place that does not exist.
        Nonsense,
    }
}

/// Counts since the node started.
#[derive(Clone, Default, Debug)]
pub struct Counters {
    /// Coherence events begun, by [`wire::PacketKind`] of their request (1 to 11).
    pub events: [u64; 12],
    /// Refused events, by [`Refusal`].
    pub refused: [u64; Refusal::ALL.len() + 1],
    /// Of those, accesses of threads.
    pub refused_accesses: u64,
    /// Packets that the home agent received.
    pub home_received: u64,
    /// Packets that the home agent sent.
    pub home_sent: u64,
    /// Packets that the cache agent received.
    pub cache_agent_received: u64,
    /// Copies that the cache agent gave up for another node's write.
    pub invalidations: u64,
    /// Blocks that the cache agent provided to other nodes.
    pub provided: u64,
    /// Reads of other nodes that the cache agent answered without giving a copy.
    pub peeked: u64,
    /// Agents' requests that had to wait for a thread's access to finish.
    pub parked: u64,
    /// Requests out of the queue that waited until this node's hold time was over.
    pub held: u64,
    /// Locks handed over to the next in the queue.
    pub handed_over: u64,
    /// Packets sent again after a time-out.
    pub retransmissions: u64,
    /// Entries handed to the switch.
    pub added_to_switch: u64,
    /// Entries taken back from the switch.
    pub removed_from_switch: u64,
    /// Restarts of the switch or of a node that this node has heard of.
    pub new_epochs: u64,
    /// Blocks whose contents came back from answers to requests that were cut short.
    pub salvaged: u64,
    /// Blocks of this home whose only current copy died.
    pub lost: u64,
    /// Batches of changed blocks that this node has committed to copies.
    pub batches: u64,
    /// Blocks in them, counted once for each batch.
    pub batched: u64,
    /// Batches of dead nodes that this one took part in, and that took effect.
    pub inherited: u64,
    /// Memories that were copied to this node.
    pub refilled: u64,
    /// Blocks that came with them.
    pub refilled_blocks: u64,
    /// Most refusals that one operation saw before it was granted.
    pub worst_refusals: u64,
    /// Packets dropped, by [`Drop`].
    pub dropped: [u64; Drop::ALL.len()],
}

/// Requests for threads that access a block.
const ACCESSES: [PacketKind; 4] =
    [PacketKind::ReadMiss, PacketKind::WriteMiss, PacketKind::WriteShared, PacketKind::Peek];

impl Counters {
    /// Accesses of threads that needed an event: data misses, upgrades, and reads where the block is. Counted once however often they
    /// were refused.
    pub fn granted_accesses(&self) -> u64 {
        let events: u64 = ACCESSES.iter().map(|kind| self.events[*kind as usize]).sum();
        events - self.refused_accesses
    }

    pub(crate) fn refuse(&mut self, kind: PacketKind, why: Refusal) {
        self.refused[why as usize] += 1;
        self.refused_accesses += u64::from(ACCESSES.contains(&kind));
    }

    pub(crate) fn drop(&mut self, why: Drop) {
        self.dropped[why as usize] += 1;
    }

    /// Adds another node's counts, for the sum over a rack.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: &mut [u64], b: &[u64]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        sum(&mut self.events, &other.events);
        sum(&mut self.refused, &other.refused);
        self.refused_accesses += other.refused_accesses;
        sum(&mut self.dropped, &other.dropped);
        self.home_received += other.home_received;
        self.home_sent += other.home_sent;
        self.cache_agent_received += other.cache_agent_received;
        self.invalidations += other.invalidations;
        self.provided += other.provided;
        self.peeked += other.peeked;
        self.parked += other.parked;
        self.held += other.held;
        self.handed_over += other.handed_over;
        self.retransmissions += other.retransmissions;
        self.added_to_switch += other.added_to_switch;
        self.removed_from_switch += other.removed_from_switch;
        self.new_epochs += other.new_epochs;
        self.salvaged += other.salvaged;
        self.lost += other.lost;
        self.batches += other.batches;
        self.batched += other.batched;
        self.inherited += other.inherited;
        self.refilled += other.refilled;
        self.refilled_blocks += other.refilled_blocks;
        self.worst_refusals = self.worst_refusals.max(other.worst_refusals);
    }
}
