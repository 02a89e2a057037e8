//! How a rack is, as one document: what the switch's process says, `--json` prints, and metrics are made of. Times
//! are in nanoseconds, sizes in bytes.
//!
//! What must always hold: counts only grow within an incarnation of what counts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rackmem::transport::udp::Single;
use rackmem::transport::{Cause, Counts};
use rackmem::{
    ChainCounts, MemoryStatus, NicCounts, NodeId, NodeReport, Phase, PlaneReport, SteeringCounts,
    SwitchReport,
};
use serde::{Deserialize, Serialize};

use crate::locks::Lock;

/// A rack, as its switch's process sees it.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Status {
    pub command: String,
    pub version: String,
    pub rack: String,
    pub transport: String,
    /// `forming`, `restarting` or `running`.
    pub phase: String,
    pub epoch: u32,
    pub switch: Switch,
    pub membership: Membership,
    pub nodes: Vec<Node>,
    /// How many nodes are to keep memory with copies; 1: there is none.
    #[serde(default = "one")]
    pub copies: usize,
    #[serde(default)]
    pub memories: Vec<Memory>,
    /// The rack file of the switch, on its machine.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Locks that have names, the busiest first. The switch does not know them: whoever asks it asks the nodes, too.
    #[serde(default)]
    pub locks: Vec<Lock>,
    /// Why they are not known.
    #[serde(default)]
    pub locks_unknown: Option<String>,
}

/// The switch.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Switch {
    pub entries_used: u64,
    pub entries: u64,
    /// Coherence packets that reached its program.
    pub packets_received: u64,
    pub packets_sent: u64,
    /// Of those that reached it, the ones that it had no use for.
    pub packets_dropped: u64,
    /// Its programs in the kernel, if they are there.
    #[serde(default)]
    pub kernel: Option<InKernel>,
    pub steering: Steering,
    pub transport: Transport,
}

/// Programs of the switch in the kernel of its machine.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct InKernel {
    /// The devices at which they see packets, and where there.
    pub ports: Vec<Port>,
    /// Where they are kept when the switch's process has gone.
    pub kept: Option<String>,
    /// Datagrams that the programs for blocks and for locks took, and those that they dropped, by cause.
    pub blocks: BTreeMap<String, u64>,
    pub locks: BTreeMap<String, u64>,
}

/// A port of the switch.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Port {
    pub device: String,
    /// Where programs see what comes in, in the kernel's words.
    pub hook: String,
}

/// What the switch did with packets of chains.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Steering {
    /// Packets that it forwarded.
    pub carried: u64,
    /// Appends that it sent to the tail, and those of them that would have gone elsewhere.
    pub steered: u64,
    pub moved: u64,
    /// Appends that passed as they were.
    pub unsteered: u64,
    /// Appends that were answered as refused, and as indeterminate.
    pub refused: u64,
    pub doubted: u64,
    /// Acknowledgements that were dropped because the one in front was missing.
    pub waited: u64,
    /// Reads that were sent to the tail.
    #[serde(default)]
    pub reads: u64,
    /// Of those, reads to a tail whose append was not acknowledged, and answers that became reads again because it still was not.
    #[serde(default)]
    pub reads_ahead: u64,
    #[serde(default)]
    pub reads_turned: u64,
    /// Answers to reads of connections from before a restart, which were refused.
    #[serde(default)]
    pub reads_refused: u64,
    /// Tails that it was told after a restart.
    #[serde(default)]
    pub preloaded: u64,
}

/// What has become of nodes.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Membership {
    pub epochs: u64,
    /// Incarnations that ended, by why.
    pub ended: BTreeMap<String, u64>,
    pub old_beats: u64,
    pub refused: u64,
    pub stalls: u64,
    /// Times that the switch heard nobody at all for longer than the timeout.
    pub cut_off: u64,
}

/// A node.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Node {
    pub id: u16,
    pub up: bool,
    /// Its last incarnation; 0: it has never been there.
    pub incarnation: u32,
    /// How long it has not been heard; none if it is not up.
    pub silence_ns: Option<u64>,
    pub epoch: u32,
    /// How far it has come, if it is to leave when others have what it keeps.
    #[serde(default)]
    pub draining: Option<Drain>,
    /// As of its last beat; none if there was no beat with counts.
    pub counts: Option<NodeCounts>,
}

/// What holds a node that is to leave.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Drain {
    /// Memories with copies that it has, and too few of the nodes that stay.
    pub memories_missing: usize,
    /// How many of those there are.
    pub nodes_staying: usize,
}

/// A memory with copies.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Memory {
    /// The node that it is near.
    pub near: u16,
    /// The nodes that have it whole.
    pub kept_by: Vec<u16>,
    /// Those to which it is being copied.
    pub copied_to: Vec<u16>,
}

fn one() -> usize {
    1
}

/// What a node has counted in this incarnation.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct NodeCounts {
    pub hits: u64,
    pub misses: u64,
    pub refused: u64,
    pub retransmissions: u64,
    pub invalidations: u64,
    pub provided: u64,
    pub peeked: u64,
    pub home_packets: u64,
    pub lost_blocks: u64,
    /// Bytes that came to it because a memory with copies had too few.
    #[serde(default)]
    pub refilled_bytes: u64,
    pub memory_live_bytes: u64,
    /// It rebuilds its directory after somebody died.
    pub recovering: bool,
    /// Bytes that it has mapped now; accesses through pointers that waited; those resolved in place; blocks that came along.
    #[serde(default)]
    pub mapped_bytes: u64,
    #[serde(default)]
    pub faults: u64,
    #[serde(default)]
    pub faults_in_place: u64,
    #[serde(default)]
    pub blocks_ahead: u64,
    /// Packets that its machines dropped, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// What it did one-sided, or had done to its memory.
    pub nic: Nic,
    /// What its metadata servers of chains did.
    pub chains: Chains,
    pub transport: Transport,
}

/// What a node's metadata servers of chains have, and have done.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Chains {
    pub stores: u64,
    pub keys: u64,
    /// Bytes that were ever given to clients, and those of them that are free.
    pub made_bytes: u64,
    pub free_bytes: u64,
    pub calls: u64,
    /// Appends that it was told of.
    pub appends: u64,
    /// Entries that it looked at.
    pub walked: u64,
    /// Clients that died.
    pub swept: u64,
    /// Copies of parts of stores, and backups of their metadata servers, that have died and have not been replaced, and what those copies
    /// had; copies that were made anew, and what was copied for that.
    pub missing: u64,
    pub missing_bytes: u64,
    pub recopied: u64,
    pub recopied_bytes: u64,
}

/// What a NIC has done.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Nic {
    pub sent: u64,
    pub received: u64,
    /// Requests that came again.
    pub duplicates: u64,
    /// Times that packets were sent again.
    pub repeated: u64,
    /// Connections that failed.
    pub broken: u64,
    /// Packets and calls dropped, by cause.
    pub dropped: BTreeMap<String, u64>,
}

/// What a transport has done.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Transport {
    pub sent: u64,
    pub sent_bytes: u64,
    pub received: u64,
    pub received_bytes: u64,
    pub wake_ups: u64,
    /// Messages dropped, by cause.
    pub dropped: BTreeMap<String, u64>,
}

impl Status {
    pub fn new(rack: &str, transport: &str, report: &SwitchReport) -> Self {
        let phase = match report.phase {
            Phase::Forming => "forming",
            Phase::Restarting => "restarting",
            Phase::Running => "running",
        };
        let nodes = report.nodes.iter().map(|node| Node {
            id: node.node.0,
            up: node.alive,
            incarnation: node.incarnation.0,
            silence_ns: node.silence.map(|silence| silence.0),
            epoch: node.epoch.0,
            draining: node.drain.map(|drain| Drain {
                memories_missing: drain.missing.len(),
                nodes_staying: drain.staying.into(),
            }),
            counts: node.report.as_ref().map(NodeCounts::from),
        });
        let counters = &report.membership;
        let ended = [
            ("silent", counters.silent),
            ("behind", counters.lost),
            ("left", counters.left),
            ("replaced", counters.replaced),
        ];
        Self {
            command: "status".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rack: rack.to_owned(),
            transport: transport.to_owned(),
            phase: phase.to_owned(),
            epoch: report.epoch.0,
            switch: Switch {
                entries_used: report.occupancy,
                entries: report.entries,
                packets_received: report.packets_received,
                packets_sent: report.packets_sent,
                packets_dropped: report.program_dropped,
                kernel: report.plane.as_ref().map(InKernel::from),
                steering: Steering::from(&report.chains),
                transport: Transport::from(&report.transport),
            },
            membership: Membership {
                epochs: counters.epochs,
                ended: named(ended),
                old_beats: counters.old_beats,
                refused: counters.refused,
                stalls: counters.stalls,
                cut_off: counters.cut_off,
            },
            nodes: nodes.collect(),
            copies: report.copies,
            memories: report.memories.iter().map(Memory::from).collect(),
            file: None,
            locks: Vec::new(),
            locks_unknown: None,
        }
    }
}

impl Status {
    /// How many copies memories with copies lack.
    pub fn copies_missing(&self) -> u64 {
        let lacks = |memory: &Memory| self.copies.saturating_sub(memory.kept_by.len());
        self.memories.iter().map(|memory| lacks(memory) as u64).sum()
    }
}

impl From<&PlaneReport> for InKernel {
    fn from(report: &PlaneReport) -> Self {
        let of = |about: Single| {
            let counts = report.datagrams.iter().filter(|(single, _)| *single == about);
            counts
                .flat_map(|(_, counts)| counts)
                .map(|(name, count)| (name.replace(' ', "_"), *count))
                .collect()
        };
        let (blocks, locks) = (of(Single::Packet), of(Single::Lock));
        let kept = report.kept.as_ref().map(|kept| kept.display().to_string());
        let port =
            |(device, hook): &(String, &str)| Port { device: device.clone(), hook: (*hook).to_owned() };
        Self { ports: report.ports.iter().map(port).collect(), kept, blocks, locks }
    }
}

impl From<&NodeReport> for NodeCounts {
    fn from(report: &NodeReport) -> Self {
        Self {
            hits: report.hits,
            misses: report.misses,
            refused: report.refused,
            retransmissions: report.retransmissions,
            invalidations: report.invalidations,
            provided: report.provided,
            peeked: report.peeked,
            home_packets: report.home_packets,
            lost_blocks: report.lost,
            refilled_bytes: report.refilled,
            memory_live_bytes: report.memory_live,
            recovering: report.recovering != 0,
            mapped_bytes: report.mapped.bytes,
            faults: report.mapped.faults,
            faults_in_place: report.mapped.in_place,
            blocks_ahead: report.mapped.ahead,
            dropped: machine_drops(&report.dropped),
            nic: Nic::from(&report.nic),
            chains: Chains::from(&report.chains),
            transport: Transport::from(&report.transport),
        }
    }
}

impl From<&MemoryStatus> for Memory {
    fn from(memory: &MemoryStatus) -> Self {
        let of = |nodes: &[NodeId]| nodes.iter().map(|node| node.0).collect();
        Self { near: memory.near.0, kept_by: of(&memory.kept_by), copied_to: of(&memory.copied_to) }
    }
}

impl From<&NicCounts> for Nic {
    fn from(counts: &NicCounts) -> Self {
        let NicCounts { received, sent, duplicates, repeated, broken, .. } = *counts;
        Self { sent, received, duplicates, repeated, broken, dropped: named(counts.dropped_by_cause()) }
    }
}

impl From<&SteeringCounts> for Steering {
    fn from(counts: &SteeringCounts) -> Self {
        let SteeringCounts { forwarded, steered, moved, unsteered, refused, indeterminate, waited, .. } =
            *counts;
        let SteeringCounts { reads, reads_ahead, reads_turned, reads_refused, preloaded, .. } = *counts;
        Self {
            carried: forwarded,
            steered,
            moved,
            unsteered,
            refused,
            doubted: indeterminate,
            waited,
            reads,
            reads_ahead,
            reads_turned,
            reads_refused,
            preloaded,
        }
    }
}

impl From<&ChainCounts> for Chains {
    fn from(counts: &ChainCounts) -> Self {
        let ChainCounts {
            stores,
            keys,
            bytes_made: made_bytes,
            bytes_free: free_bytes,
            calls,
            appends,
            walked,
            swept,
            missing,
            bytes_missing: missing_bytes,
            recopied,
            bytes_recopied: recopied_bytes,
        } = *counts;
        Self {
            stores,
            keys,
            made_bytes,
            free_bytes,
            calls,
            appends,
            walked,
            swept,
            missing,
            missing_bytes,
            recopied,
            recopied_bytes,
        }
    }
}

impl From<&Counts> for Transport {
    fn from(counts: &Counts) -> Self {
        Self {
            sent: counts.sent,
            sent_bytes: counts.sent_bytes,
            received: counts.received,
            received_bytes: counts.received_bytes,
            wake_ups: counts.wake_ups,
            dropped: named(Cause::ALL.into_iter().map(|cause| (cause.name(), counts.dropped_for(cause)))),
        }
    }
}

/// What a node's machines dropped, by cause.
pub fn machine_drops(counts: &[u64; node::Drop::ALL.len()]) -> BTreeMap<String, u64> {
    let name = |cause| match cause {
        node::Drop::WrongEpoch => "wrong_epoch",
        node::Drop::FormerIncarnation => "former_incarnation",
        node::Drop::Stale => "stale",
        node::Drop::Duplicate => "duplicate",
        node::Drop::NoSuchCopy => "no_such_copy",
        node::Drop::Nonsense => "nonsense",
    };
    named(node::Drop::ALL.into_iter().map(name).zip(counts.iter().copied()))
}

fn named<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}
