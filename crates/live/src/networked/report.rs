//! What a rack of processes tells whoever asks how it is.
//!
//! Every node puts its numbers into its beats, so that the switch's process knows about all of them.

use std::sync::{Arc, Mutex, PoisonError};

use membership::coordinator::{self, Phase};
use membership::message::Drain;
use transport::{Cause, Counts};
use wire::{Incarnation, Nanos, NodeId, SwitchEpoch};

use super::plane::PlaneReport;
use super::verbs::NicCounts;
use crate::chains::{ServerCounts, SteeringCounts};
use crate::memory::pages::MappedCounts;

/// What a node counts, as of its last beat or now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeReport {
    /// Accesses that found their block in the cache.
    pub hits: u64,
    /// Accesses that needed a coherence event, granted ones only.
    pub misses: u64,
    /// Events that were refused and tried again.
    pub refused: u64,
    /// Packets sent again after a time-out.
    pub retransmissions: u64,
    /// Copies given up for other nodes' writes.
    pub invalidations: u64,
    /// Blocks given to other nodes.
    pub provided: u64,
    /// Reads of other nodes that were answered without giving a copy.
    pub peeked: u64,
    /// Packets that the home agent received and sent.
    pub home_packets: u64,
    /// Blocks of this home whose only current copy died.
    pub lost: u64,
    /// Bytes that came to it because a memory with copies had too few.
    pub refilled: u64,
    /// Bytes of its memory in allocations.
    pub memory_live: u64,
    /// 1 while the node rebuilds its directory after somebody died.
    pub recovering: u64,
    /// Packets that its machines dropped, in the order of [`node::Drop::ALL`].
    pub dropped: [u64; node::Drop::ALL.len()],
    /// What it has mapped.
    pub mapped: MappedCounts,
    /// What its NIC did.
    pub nic: NicCounts,
    /// What its metadata servers of chains did.
    pub chains: ServerCounts,
    /// What its transport did.
    pub transport: Counts,
}

const WORDS: usize = 12
    + node::Drop::ALL.len()
    + MappedCounts::WORDS
    + NicCounts::WORDS
    + ServerCounts::WORDS
    + 5
    + Cause::ALL.len();

impl NodeReport {
    /// What a node's machine of coherence counts; nothing of what is counted beside it.
    pub fn of(machine: &node::Node) -> Self {
        let counters = machine.counters();
        Self {
            misses: counters.granted_accesses(),
            refused: counters.refused.iter().sum(),
            retransmissions: counters.retransmissions,
            invalidations: counters.invalidations,
            provided: counters.provided,
            peeked: counters.peeked,
            home_packets: counters.home_received + counters.home_sent,
            lost: counters.lost,
            refilled: counters.refilled_blocks * machine.config().block.bytes(),
            memory_live: machine.memory_in_use().0,
            recovering: u64::from(machine.is_recovering()),
            dropped: counters.dropped,
            ..Self::default()
        }
    }

    /// What a beat carries.
    pub(super) fn encode(&self) -> Vec<u8> {
        let own = [
            self.hits,
            self.misses,
            self.refused,
            self.retransmissions,
            self.invalidations,
            self.provided,
            self.peeked,
            self.home_packets,
            self.lost,
            self.refilled,
            self.memory_live,
            self.recovering,
        ];
        let Counts { sent, sent_bytes, received, received_bytes, wake_ups, dropped } = &self.transport;
        let transport = [*sent, *sent_bytes, *received, *received_bytes, *wake_ups];
        let own = own.into_iter().chain(self.dropped).chain(self.mapped.words()).chain(self.nic.words());
        let own = own.chain(self.chains.words());
        own.chain(transport).chain(*dropped).flat_map(u64::to_le_bytes).collect()
    }

    /// What a beat carried; `None`: nothing, or of another version.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != WORDS * 8 {
            return None;
        }
        let mut words =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        let mut next = || words.next().expect("as many as WORDS");
        Some(Self {
            hits: next(),
            misses: next(),
            refused: next(),
            retransmissions: next(),
            invalidations: next(),
            provided: next(),
            peeked: next(),
            home_packets: next(),
            lost: next(),
            refilled: next(),
            memory_live: next(),
            recovering: next(),
            dropped: std::array::from_fn(|_| next()),
            mapped: MappedCounts::of_words(&mut next),
            nic: NicCounts::of_words(&mut next),
            chains: ServerCounts::of_words(&mut next),
            transport: Counts {
                sent: next(),
                sent_bytes: next(),
                received: next(),
                received_bytes: next(),
                wake_ups: next(),
                dropped: std::array::from_fn(|_| next()),
            },
        })
    }
}

/// A node, as the coordinator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeStatus {
    /// Which.
    pub node: NodeId,
    /// In the rack.
    pub alive: bool,
    /// Its last incarnation; 0: it has never been there.
    pub incarnation: Incarnation,
    /// How long it has not been heard, if it is alive.
    pub silence: Option<Nanos>,
    /// The epoch that it said it was in.
    pub epoch: SwitchEpoch,
    /// How far it has come, if it drains.
    pub drain: Option<Drain>,
    /// What it counts.
    pub report: Option<NodeReport>,
}

/// A memory with copies, as the coordinator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryStatus {
    /// The node near which it is: the first one to keep it, if it is up.
    pub near: NodeId,
    /// The nodes that have it whole.
    pub kept_by: Vec<NodeId>,
    /// Those to which it is being copied.
    pub copied_to: Vec<NodeId>,
}

/// The rack, as the switch's process sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchReport {
    /// What the coordinator is doing.
    pub phase: Phase,
    /// The rack's epoch.
    pub epoch: SwitchEpoch,
    /// By node.
    pub nodes: Vec<NodeStatus>,
    /// How many nodes are to keep memory with copies; 1: there is none.
    pub copies: usize,
    /// Such memories, by the nodes that they are near.
    pub memories: Vec<MemoryStatus>,
    /// Entries of the switch's directory that are in use.
    pub occupancy: u64,
    /// Entries that it has.
    pub entries: u64,
    /// Coherence packets that reached the switch's program.
    pub packets_received: u64,
    /// Packets that it sent.
    pub packets_sent: u64,
    /// Packets that its program dropped: of another incarnation of the switch, malformed, about requests that are over.
    pub program_dropped: u64,
    /// Its programs elsewhere, if they are.
    pub plane: Option<PlaneReport>,
    /// What it did for chains.
    pub chains: SteeringCounts,
    /// What the coordinator has counted.
    pub membership: coordinator::Counters,
    /// What the switch's transport did.
    pub transport: Counts,
}

impl SwitchReport {
    /// How many copies memories with copies lack.
    pub fn copies_missing(&self) -> usize {
        self.memories.iter().map(|memory| self.copies.saturating_sub(memory.kept_by.len())).sum()
    }
}

/// Where the switch's process leaves its report for other threads.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    report: Arc<Mutex<Option<SwitchReport>>>,
}

impl Watch {
    /// The last report: a fifth of a second old at most, while the switch runs. `None`: it does not run yet.
    pub fn report(&self) -> Option<SwitchReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn leave(&self, report: SwitchReport) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    /// True if somebody may read what is left.
    pub(super) fn is_watched(&self) -> bool {
        Arc::strong_count(&self.report) > 1
    }
}

const _: () = assert!(WORDS * 8 <= membership::message::MOST_STATISTICS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_a_beat() {
        let mut report = NodeReport { hits: 1, misses: 2, lost: 3, recovering: 1, ..NodeReport::default() };
        report.dropped[5] = 4;
        report.transport.dropped[7] = 5;
        report.nic.dropped[3] = 8;
        report.mapped.ahead = 7;
        report.nic.malformed = 9;
        report.chains.recopied = 10;
        report.transport.wake_ups = 6;
        assert_eq!(NodeReport::parse(&report.encode()), Some(report.clone()));
        assert_eq!(NodeReport::parse(&report.encode()[8..]), None);
        assert_eq!(NodeReport::parse(&[]), None);
    }
}
