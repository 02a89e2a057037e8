//! Memory that outlives its node: copies of it on other nodes, and what of a dead node's writes survives.
//!
//! A rack with copies has, beside the memory of each node, as many *memories with copies*. Their ids follow those of the nodes, and
//! addresses name them like any other home. Each is kept by a few nodes, in a ring: the first of them that is up serves it, as its home,
//! and the next one takes over in the epoch that declares the first one dead.
//!
//! # The promise
//! When a node dies, a prefix of its writes to such memory survives. It contains all that the node has synced, and all that others have
//! seen; nothing survives without what that node wrote before it.
//!
//! # How
//! What a node changes stays in its cache, as ever. Before a block that was changed leaves it, all that the node has changed by then
//! goes to memory, on all nodes that keep a copy: a *batch*. It is a commit in two phases. PREPARE brings the blocks to those nodes,
//! which hold them; when all of them have all, COMMIT makes them take the blocks into memory, all or none. So a home's memory always
//! holds a prefix, and the copies hold the same one: nothing of these memories is ever lost with a writer.
//!
//! A batch is one moment of its node. Its blocks are protected: the first write to one of them comes here, and marks it as changed
//! again. Nobody writes in any of them before the last one is protected.
//!
//! What leaves a node, and waits for the batch: a block that another node reads or writes, an answer to a PEEK, a block that is
//! evicted (which need not be sent then: it is there), the release of a block lock, a FREE. What a node gets from others is committed.
//!
//! If the node dies between the phases, those who took part ask each other: if somebody has committed, or all that are alive hold the
//! whole, it takes effect; else nobody acts upon it. A home decides nothing in a new epoch before every node is done with that, and has
//! committed what it had changed.
//!
//! | file | what happens |
//! | --- | --- |
//! | `batch.rs` | the node that has changed blocks: what goes into a batch, and its two phases |
//! | `participant.rs` | a node that keeps copies: it holds batches, and takes them into memory |
//! | `fate.rs` | after a death: what became of a batch |
//! | `refill.rs` | a memory is copied to one node more |
//! | `waiting.rs` | what waits for a batch, and goes on after it |
//!
//! A home replicates its calls (`home/replicate.rs`). Everything else that a home knows is rebuilt in every epoch.
//!
//! # What must always hold
//! - A block of such memory that a node may write in its cache is noted as changed; one that it owns and has protected, as owned.
//! - What others get of a block was committed before.
//! - A block in a batch is of the memory as it is, not of one before that is gone.
//! - A block in a batch is this node's own, or an answer about it waits for the batch: so nobody else's batch has it, too.

pub(crate) mod batch;
mod fate;
mod participant;
mod refill;
pub(crate) mod waiting;

use alloc::vec::Vec;

use sorted::{Map, Set};
use wire::{BlockTag, Copyset, Incarnation, Nanos, NodeId, Packet, Rule, Rules, Seq};

use crate::coherence::config::NodeConfig;
use crate::coherence::context::Context;
use crate::coherence::recovery::{Kept, Placement, View};
use crate::store::{Access, DataRef, FrameId, Pinned, Store};
use batch::Batch;
use fate::Inquiry;
use participant::Held;
use refill::Refill;
use waiting::Then;

/// An incarnation of a node.
type Life = (NodeId, Incarnation);

/// Stands in a batch for a block of a memory that is gone. There is no such block: it would be at the null address.
const NOWHERE: BlockTag = BlockTag::from_bits(0);

/// What a node knows of memory with copies.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Copies {
    nodes: usize,
    /// The nodes that have each such memory whole; the first one serves it.
    hosts: Vec<Vec<NodeId>>,
    /// The nodes that are getting it.
    filling: Vec<Vec<NodeId>>,
    /// What this node is getting, and what it has got since the epoch began.
    refills: Map<NodeId, Refill>,
    refilled: Copyset,
    /// Blocks that this node has written since they were last protected.
    changed: Set<BlockTag>,
    /// Blocks that nobody else has, and that are protected.
    owned: Set<BlockTag>,
    /// Blocks that were changed and have left the cache, or can be read by others: the next batch has them.
    given: Map<BlockTag, DataRef>,
    batch: Option<Batch>,
    /// The last batch begun, the last one that all participants hold, and the last one that is committed everywhere.
    begun: Seq,
    prepared: Seq,
    committed: Seq,
    /// Somebody waits for this one.
    wanted: Seq,
    /// Answers of the cache agent, by the batch that they wait for.
    answers: Vec<(Seq, Packet)>,
    /// The same for what threads do.
    waiting: Vec<(Seq, Then)>,
    /// Batches of others that are not committed here.
    held: Map<Life, Held>,
    /// The last batch of others that is over here, and whether it took effect. One for each life of a node: others who took part may
    /// ask for long, if recoveries are cut short.
    ended: Map<Life, (Seq, bool)>,
    inquiries: Map<Life, Inquiry>,
    /// Homes may decide when this node's batch is committed.
    gate: Seq,
    /// They have been told so in this epoch.
    has_told: bool,
}

impl Copies {
    pub(crate) fn new(config: &NodeConfig) -> Self {
        let everybody = Copyset::from_bits(u64::MAX >> (Copyset::NODES - config.nodes));
        let memories = 0..config.memories() - config.nodes;
        let (nodes, copies, draining) = (config.nodes, config.copies, Copyset::EMPTY);
        let who = Placement { nodes, copies, up: everybody, draining };
        let anew = |i| Kept::anew(Incarnation(0), i, &who);
        let view = View {
            epoch: config.switch_epoch,
            incarnations: core::iter::repeat_n(Some(Incarnation(0)), config.nodes).collect(),
            shadow: config.shadow,
            memories: memories.map(anew).collect(),
        };
        Self {
            nodes: config.nodes,
            hosts: hosts_in(&view),
            filling: alloc::vec![Vec::new(); view.memories.len()],
            refills: Map::new(),
            refilled: Copyset::EMPTY,
            changed: Set::new(),
            owned: Set::new(),
            given: Map::new(),
            batch: None,
            begun: Seq::NONE,
            prepared: Seq::NONE,
            committed: Seq::NONE,
            wanted: Seq::NONE,
            answers: Vec::new(),
            waiting: Vec::new(),
            held: Map::new(),
            ended: Map::new(),
            inquiries: Map::new(),
            gate: Seq::NONE,
            has_told: true,
        }
    }

    /// True in a rack with such memory.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// The nodes that keep this memory, if it has copies; the first one serves it.
    pub(crate) fn hosts(&self, memory: NodeId) -> &[NodeId] {
        memory.index().checked_sub(self.nodes).and_then(|at| self.hosts.get(at)).map_or(&[], Vec::as_slice)
    }

    /// The nodes that have this memory, or are getting it: what is committed goes to all of them.
    pub(crate) fn keepers(&self, memory: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let nth = memory.index().checked_sub(self.nodes).filter(|nth| *nth < self.hosts.len());
        nth.into_iter().flat_map(|nth| self.hosts[nth].iter().chain(&self.filling[nth]).copied())
    }

    /// True if this node is getting that memory.
    pub(crate) fn is_filling(&self, memory: NodeId, node: NodeId) -> bool {
        let nth = memory.index().checked_sub(self.nodes).and_then(|nth| self.filling.get(nth));
        nth.is_some_and(|filling| filling.contains(&node))
    }

    /// The memories with copies that this node has whole, counted from the first of them.
    pub(crate) fn whole_at(&self, node: NodeId) -> Copyset {
        let of_view = self.hosts.iter().enumerate().filter(|(_, hosts)| hosts.contains(&node));
        let of_view: Copyset = of_view.map(|(nth, _)| NodeId(nth as u16)).collect();
        of_view.union(self.refilled)
    }

    /// The node that serves this memory.
    pub(crate) fn server(&self, memory: NodeId) -> Option<NodeId> {
        if memory.index() < self.nodes { Some(memory) } else { self.hosts(memory).first().copied() }
    }

    /// The memories with copies that somebody serves.
    pub(crate) fn served(&self) -> impl Iterator<Item = NodeId> + '_ {
        let ids = (self.nodes..).map(|id| NodeId(u16::try_from(id).expect("at most 64 memories")));
        ids.zip(&self.hosts).filter(|(_, hosts)| !hosts.is_empty()).map(|(id, _)| id)
    }

    /// Those that this node has, or is getting.
    pub(crate) fn kept_by(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.served().filter(move |memory| self.keepers(*memory).any(|it| it == node))
    }

    /// True if this block has copies.
    #[inline]
    pub(crate) fn has(&self, tag: BlockTag) -> bool {
        tag.home().index() >= self.nodes
    }

    /// What this node may do with a block that it has cached like this. One that is protected is its own all the same.
    #[inline]
    pub(crate) fn access(&self, tag: BlockTag, cached: Access) -> Access {
        if self.has(tag) && self.owned.contains(&tag) { Access::Modified } else { cached }
    }

    /// The last batch that is committed everywhere.
    pub(crate) fn committed(&self) -> Seq {
        self.committed
    }

    /// True if homes of such memory may decide, as far as this node knows.
    pub(crate) fn is_settled(&self) -> bool {
        self.inquiries.is_empty() && self.committed >= self.gate
    }

    /// True if nothing is in flight.
    pub(crate) fn is_quiet(&self) -> bool {
        self.batch.is_none()
            && self.answers.is_empty()
            && self.waiting.is_empty()
            && self.held.is_empty()
            && self.inquiries.is_empty()
            && self.refills.is_empty()
    }

    /// When to repeat something.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Nanos {
        if !self.is_on() {
            return Nanos::MAX;
        }
        let batch = self.batch.as_ref().map_or(Nanos::MAX, |batch| batch.deadline);
        let asked = self.inquiries.values().map(|inquiry| inquiry.deadline);
        asked.chain(self.refills.values().map(|refill| refill.deadline)).fold(batch, Nanos::min)
    }

    /// True if something is repeated when its time has come.
    pub(crate) fn is_armed(&self) -> bool {
        self.next_deadline() < Nanos::MAX
    }

    /// When everything in flight is sent again: for checkers that know no time.
    pub(crate) fn set_deadlines(&mut self, due: Nanos) {
        let armed = self.batch.iter_mut().map(|batch| &mut batch.deadline);
        let armed = armed.filter(|deadline| **deadline < Nanos::MAX);
        let asked = self.inquiries.values_mut().map(|inquiry| &mut inquiry.deadline);
        let refills = self.refills.values_mut().map(|refill| &mut refill.deadline);
        armed.chain(asked).chain(refills).for_each(|deadline| *deadline = due);
    }

    pub(crate) fn invariants<S: Store>(&self, store: &S) {
        store.published(|_, tag, access| {
            if self.has(tag) {
                let (changed, owned) = (self.changed.contains(&tag), self.owned.contains(&tag));
                assert_eq!(access == Access::Modified, changed, "{tag:?} is cached as {access:?}");
                assert!(!(changed && owned), "{tag:?} is changed and protected");
            }
        });
        for tag in self.changed.iter().chain(self.owned.iter()) {
            assert!(store.lookup(*tag).is_some(), "{tag:?} is this node's own, and not cached");
        }
    }
}

/// The nodes that keep each memory with copies.
fn hosts_in(view: &View) -> Vec<Vec<NodeId>> {
    (0..view.memories.len()).map(|i| view.hosts(i).collect()).collect()
}

impl<S: Store, R: Rules> Context<'_, S, R> {
    /// A thread of this node may write in this block from now on.
    pub(crate) fn note_writable(&mut self, tag: BlockTag) {
        if self.copies.has(tag) {
            self.copies.owned.remove(&tag);
            self.copies.changed.insert(tag);
        }
    }

    /// A thread wants to write in a block that is this node's own and protected: it may, and has it pinned.
    ///
    /// # Errors
    /// If a thread has it pinned, or a batch is not one moment yet.
    pub(crate) fn unprotect(&mut self, frame: FrameId, tag: BlockTag) -> Result<(), Pinned> {
        let collecting = self.copies.batch.as_ref().is_some_and(Batch::is_collecting);
        if collecting && self.rules.holds(Rule::BatchesAreOneMoment) {
            return Err(Pinned);
        }
        self.store.upgrade(frame)?;
        self.note_writable(tag);
        Ok(())
    }

    /// Others may read this block from now on, and nobody write it: the frame stays.
    pub(crate) fn note_shared(&mut self, frame: FrameId, tag: BlockTag) {
        if self.copies.has(tag) {
            self.copies.owned.remove(&tag);
            if self.copies.changed.remove(&tag) {
                let data = self.store.retain(frame);
                self.give(tag, data);
            }
        }
    }

    /// The frame was withdrawn, and the block leaves this node; if it has not ended, with what was written in it.
    pub(crate) fn note_leaving(&mut self, frame: FrameId, tag: BlockTag, has_ended: bool) {
        if self.copies.has(tag) {
            self.copies.owned.remove(&tag);
            if self.copies.changed.remove(&tag) && !has_ended {
                let data = self.store.retain(frame);
                self.give(tag, data);
            }
        }
    }

    fn give(&mut self, tag: BlockTag, data: DataRef) {
        if let Some(old) = self.copies.given.insert(tag, data) {
            self.store.discard(old);
        }
    }

    /// A block that was on its way out stays: threads may write in it.
    pub(crate) fn note_kept(&mut self, tag: BlockTag) {
        if self.copies.has(tag) {
            self.note_writable(tag);
            if let Some(data) = self.copies.given.remove(&tag) {
                self.store.discard(data);
            }
        }
    }

    /// A new epoch begins: who keeps what; and what had to do with nodes that are dead, and with memories that are gone, is over.
    pub(crate) fn copies_on_new_epoch(&mut self, view: &View, (dead, gone): (Copyset, Copyset)) {
        if !self.copies.is_on() {
            return;
        }
        self.copies.hosts = hosts_in(view);
        self.copies.filling = (0..view.memories.len()).map(|i| view.filling(i).collect()).collect();
        // Their requesters ask again.
        self.copies.answers.clear();
        // What is cached of memories that are gone is dropped, as of dead homes.
        let stays = |tag: &BlockTag| !gone.contains(tag.home());
        let given = core::mem::take(&mut self.copies.given);
        for (tag, data) in given.iter() {
            if stays(tag) {
                self.copies.given.insert(*tag, *data);
            } else {
                self.store.discard(*data);
            }
        }
        self.batch_on_new_epoch(view, gone);
        self.held_on_new_epoch(gone);
        self.ask_for_the_dead(view, dead);
        self.begin_refills();
        (self.copies.gate, self.copies.has_told) = (self.want_batch(), false);
    }
}
