//! The home agent of a node's memory (Concordia, sections 5.1.1 and 5.2).
//!
//! It has three jobs: it answers with data for blocks that nobody caches; it runs the lock-check-forward steps
//! of the switch for blocks that the switch does not own, with the very same tables; and it moves the
//! ownership of blocks to the switch and back.
//!
//! | file | what happens |
//! | --- | --- |
//! | `directory.rs` | the entries: lock, status, copyset, keeper |
//! | `on_request.rs` | a request: data for the switch's blocks, lock-check-forward for its own |
//! | `on_unlock.rs` | an event ends |
//! | `on_write_back.rs` | a modified block comes home |
//! | `migration.rs` | ADD-TO-SWITCH and REMOVE-FROM-SWITCH |
//! | `on_epoch.rs` | which blocks are hot enough to move |
//! | `on_report.rs`, `rebuild.rs` | the directory is rebuilt after a restart |
//! | `replicate.rs` | of a memory with copies: what a call changed, everywhere where one is |
//! | `on_call.rs` | an allocator asks for a chunk, marks blocks, frees |
//!
//! What must always hold: nothing is decided about a block while its keeper is the switch; a request is decided
//! once, however often it comes; a write-back is taken once, and none after its event is closed.

pub(crate) mod canonical;
pub mod directory;
mod migration;
mod on_call;
mod on_epoch;
mod on_report;
mod on_request;
mod on_unlock;
mod on_write_back;
mod rebuild;
mod replicate;

use alloc::boxed::Box;
use alloc::vec::Vec;

use sorted::{Map, Set};
use wire::{
    BlockTag, Copyset, Endpoint, GlobalStatus, NodeId, Packet, PacketKind, Refusal, RequesterId, Rule, Rules,
    Seq, SwitchEpoch,
};

use crate::allocator::{BlockRange, ChunkTable};
use crate::coherence::config::NodeConfig;
use crate::coherence::context::Context;
use crate::store::Store;
use directory::{Directory, Keeper};
use migration::Migration;
use on_report::Rebuilding;
use rebuild::Knowledge;
use replicate::Replicating;

/// The state of one node's home agent.
pub(crate) struct HomeAgent {
    node: NodeId,
    pub(crate) directory: Directory,
    pub(crate) chunks: ChunkTable,
    pub(crate) migration: Migration,
    /// The last event decided, by requester and parity.
    decided: Box<[Decided]>,
    /// The last event whose write-back was taken, by requester and parity.
    written_back: Box<[Seq]>,
    /// The last call of an allocator answered, by requester.
    calls: Box<[Option<Packet>]>,
    /// Blocks that have been hot in this epoch.
    warm: Vec<BlockTag>,
    /// Blocks whose only current copy died.
    pub(crate) lost: Set<BlockTag>,
    /// Blocks whose incarnations the packet that came last has ended.
    pub(crate) ended: Vec<BlockRange>,
    /// After a restart, until everybody has reported.
    rebuilding: Option<Rebuilding>,
    /// What was known before.
    knowledge: Option<Knowledge>,
    /// The last epoch in which this home has decided anything: the directory was rebuilt in it, or was new.
    rebuilt: SwitchEpoch,
    /// Of a memory with copies: calls that not all who keep it have repeated, by requester.
    replicating: Map<usize, Replicating>,
}

/// What became of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Decided {
    seq: Seq,
    /// What was asked, and of which block: a number stands for one request.
    event: PacketKind,
    tag: BlockTag,
    how: Decision,
}

impl Decided {
    const NOTHING: Self = Self {
        seq: Seq::NONE,
        event: PacketKind::ReadMiss,
        tag: BlockTag::from_bits(0),
        how: Decision::Closed,
    };

    fn new(packet: &Packet, how: Decision) -> Self {
        Self { seq: packet.seq, event: packet.event, tag: packet.tag, how }
    }

    /// True if the packet has this number, and is about another event all the same.
    fn contradicts(&self, packet: &Packet) -> bool {
        self.seq == packet.seq && (self.event != packet.event || self.tag != packet.tag)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Decision {
    /// The lock is held.
    Granted,
    /// It changes nothing.
    Refused(Refusal),
    /// It has been unlocked.
    Closed,
}

impl HomeAgent {
    /// The home of this memory.
    pub(crate) fn of(memory: NodeId, config: &NodeConfig) -> Self {
        let rows = RequesterId::rows(config.nodes, config.lock_slots);
        let chunks = ChunkTable::new(memory, config.memory, config.block, config.chunk);
        Self {
            node: memory,
            directory: Directory::new(config.block, config.memory),
            chunks: if memory.index() < config.nodes { chunks } else { chunks.rooted() },
            migration: Migration::new(),
            decided: core::iter::repeat_n(Decided::NOTHING, rows * 2).collect(),
            written_back: core::iter::repeat_n(Seq::NONE, rows * 2).collect(),
            calls: core::iter::repeat_n(None, rows).collect(),
            warm: Vec::new(),
            lost: Set::new(),
            ended: Vec::new(),
            rebuilding: None,
            knowledge: None,
            rebuilt: config.switch_epoch,
            replicating: Map::new(),
        }
    }

    /// The home of this memory, which begins anew: nothing that this node has of one before is in it.
    pub(crate) fn anew<S: Store, R: Rules>(memory: NodeId, cx: &mut Context<'_, S, R>) -> Self {
        let home = Self::of(memory, cx.config);
        if cx.rules.holds(Rule::MemoriesBeginEmpty) {
            cx.store.zero_home(home.chunks.root(), cx.config.block.bytes());
        }
        home
    }

    /// The home of this memory, to which it is copied from the epoch on that begins.
    pub(crate) fn of_a_copy(memory: NodeId, config: &NodeConfig) -> Self {
        let home = Self::of(memory, config);
        Self { chunks: home.chunks.copied_from(config.switch_epoch), ..home }
    }

    fn me(&self) -> Endpoint {
        Endpoint::HomeAgent(self.node)
    }

    fn row(requester: RequesterId, seq: Seq) -> usize {
        requester.index() * 2 + seq.parity()
    }

    /// The requester's node has started a new incarnation: its numbers begin again.
    pub(crate) fn forget(&mut self, node: NodeId) {
        for rows in RequesterId::rows_of(node, self.calls.len()) {
            self.decided[rows.start * 2..rows.end * 2].fill(Decided::NOTHING);
            self.written_back[rows.start * 2..rows.end * 2].fill(Seq::NONE);
            self.replicating.retain(|row, _| !rows.contains(row));
            self.calls[rows].fill(None);
        }
    }

    pub(crate) fn invariants(&self) {
        self.chunks.assert_invariants();
        let fits = |entry: &directory::Entry| {
            entry.keeper == Keeper::Switch
                || match entry.status {
                    GlobalStatus::Unshared => entry.copyset == Copyset::EMPTY,
                    GlobalStatus::Shared => !entry.copyset.is_empty(),
                    GlobalStatus::Modified => entry.copyset.len() == 1,
                }
        };
        // Who is wrong is only looked for if somebody is.
        if !self.directory.all(fits) {
            let wrong = self.directory.entries(self.node).find(|(_, entry)| !fits(entry));
            panic!("{wrong:?}");
        }
    }
}
