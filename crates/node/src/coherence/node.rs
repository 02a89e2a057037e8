//! One node: its requesters, agents and allocator behind one door.
//!
//! This is the machine that drivers drive, under the call contract of the protocol core:
//!
//! 1. One input at a time: a packet, an operation of an application thread, "a pin is gone", "the deadline
//!    passed". Each call gets the time and a random number; time never runs back.
//! 2. Each call appends its effects to a buffer that the caller owns and drains before the next call.
//! 3. [`Node::next_deadline`] names the next moment at which the node wants to be called. Being called early is
//!    harmless.
//! 4. Whatever arrives in a packet is handled, or dropped and counted. A panic is a bug in rackmem.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sorted::Map;
use wire::{
    AllRules, BlockTag, Copyset, Discipline, GlobalAddr, Incarnation, Nanos, NodeId, Refusal, Rules, SlotId,
    SwitchEpoch,
};

use crate::allocator::BlockRange;
use crate::coherence::allocation::Allocation;
use crate::coherence::cache_agent::CacheAgent;
use crate::coherence::config::NodeConfig;
use crate::coherence::context::Context;
use crate::coherence::copies::Copies;
use crate::coherence::counters::Counters;
use crate::coherence::home::HomeAgent;
use crate::coherence::message::{Effect, Started};
use crate::coherence::recovery::reporter::Reporter;
use crate::coherence::requester::Requesters;
use crate::coherence::shadow::Shadow;
use crate::store::{Access, FrameId, Moment, Store};

/// The state machines of one node.
pub struct Node<R: Rules = AllRules> {
    pub(crate) rules: R,
    pub(crate) config: NodeConfig,
    pub(crate) counters: Counters,
    pub(crate) requesters: Requesters,
    pub(crate) cache_agent: CacheAgent,
    pub(crate) home: HomeAgent,
    /// The homes of memories with copies that this node keeps, whether it serves them or not.
    pub(crate) copied: Map<NodeId, HomeAgent>,
    pub(crate) copies: Copies,
    pub(crate) allocation: Allocation,
    pub(crate) shadow: Option<Shadow>,
    pub(crate) next_epoch: Nanos,
    /// The incarnation that each node is known to be in.
    pub(crate) incarnations: Box<[Incarnation]>,
    /// The nodes that are down.
    pub(crate) down: Copyset,
    pub(crate) reporter: Reporter,
}

/// Borrows the parts of a node for one call.
macro_rules! context {
    ($node:ident, $at:ident, $store:ident, $out:ident) => {
        Context {
            rules: $node.rules,
            now: $at.now,
            random: $at.random,
            config: &$node.config,
            counters: &mut $node.counters,
            down: $node.down,
            incarnations: &$node.incarnations,
            copies: &mut $node.copies,
            store: $store,
            out: $out,
        }
    };
}

pub(crate) use context;

impl Node {
    /// A node in its initial state.
    ///
    /// # Panics
    /// If the rack has no nodes, more than a copyset can name, or not this one.
    pub fn new(config: NodeConfig) -> Self {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Node<R> {
    /// A node in its initial state, of which some rules of the protocol may not hold: for checkers.
    ///
    /// # Panics
    /// If the rack has no nodes, more than a copyset can name, or not this one.
    pub fn with_rules(rules: R, config: NodeConfig) -> Self {
        assert!(
            (1..=Copyset::NODES).contains(&config.nodes),
            "a rack has 1 to 64 nodes, not {}",
            config.nodes
        );
        assert!(config.id.index() < config.nodes, "{} of {} nodes", config.id, config.nodes);
        let copies = Copies::new(&config);
        assert!(config.memories() <= Copyset::NODES, "addresses name 64 memories, not {}", config.memories());
        Self {
            rules,
            copied: copies.kept_by(config.id).map(|id| (id, HomeAgent::of(id, &config))).collect(),
            copies,
            counters: Counters::default(),
            requesters: Requesters::new(&config),
            cache_agent: CacheAgent::new(config.id, config.nodes),
            home: HomeAgent::of(config.id, &config),
            allocation: Allocation::new(&config),
            shadow: (config.shadow == config.id).then(|| Shadow::new(config.id)),
            next_epoch: config.epoch,
            incarnations: (0..config.memories())
                .map(|node| if node == config.id.index() { config.incarnation } else { Incarnation(0) })
                .collect(),
            down: Copyset::EMPTY,
            reporter: Reporter::new(config.id),
            config,
        }
    }

    // Inputs

    /// A thread needs this block with this access, and found it cannot hit.
    pub fn on_access<S: Store>(
        &mut self,
        at: Moment,
        tag: BlockTag,
        access: Access,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> Started {
        let started = self.requesters.on_access(&mut context!(self, at, store, out), tag, access, None);
        self.go_on_with_batches(at, store, out);
        started
    }

    /// A thread reads `len` bytes at `offset` of this block, and found it cannot hit. If only these are brought, the
    /// operation ends with [`crate::Outcome::Peeked`].
    pub fn on_read<S: Store>(
        &mut self,
        at: Moment,
        tag: BlockTag,
        (offset, len): (usize, usize),
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> Started {
        let cx = &mut context!(self, at, store, out);
        let started = self.requesters.on_access(cx, tag, Access::Shared, Some((offset, len)));
        self.go_on_with_batches(at, store, out);
        started
    }

    /// A thread wants the application lock of this block; with `once` it takes a refusal for an answer.
    pub fn on_lock<S: Store>(
        &mut self,
        at: Moment,
        block: BlockTag,
        write: bool,
        once: bool,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> Started {
        self.requesters.on_lock(&mut context!(self, at, store, out), block, write, once)
    }

    /// The application releases the lock that it holds in this slot.
    ///
    /// # Panics
    /// If it holds none there.
    pub fn on_release<S: Store>(&mut self, at: Moment, slot: SlotId, store: &mut S, out: &mut Vec<Effect>) {
        self.requesters.on_release(&mut context!(self, at, store, out), slot);
        self.go_on_with_batches(at, store, out);
    }

    /// The node is about to leave the rack: starts to send home what only it has, as much at a time as there are slots
    /// for. To be called again and again. Returns how many blocks have not arrived yet.
    pub fn on_leaving<S: Store>(&mut self, at: Moment, store: &mut S, out: &mut Vec<Effect>) -> usize {
        let cx = &mut context!(self, at, store, out);
        let left = self.requesters.on_leaving(cx) + usize::from(cx.want_batch() > cx.copies.committed());
        self.go_on_with_batches(at, store, out);
        left
    }

    /// The same, when nothing is left of that: whether what this node has given to others has arrived, and what it has said in an
    /// epoch that has begun meanwhile. Returns how much has not.
    pub fn on_parting<S: Store>(&mut self, at: Moment, store: &mut S, out: &mut Vec<Effect>) -> usize {
        let given = self.cache_agent.given(store);
        let cx = &mut context!(self, at, store, out);
        let (left, arrived) = self.requesters.on_parting(cx, given);
        self.cache_agent.arrived(cx, &arrived);
        self.go_on_with_batches(at, store, out);
        left + usize::from(!self.reporter.is_quiet())
    }

    /// This block is to leave the cache, if it is there. Whoever waits for that gets [`crate::Outcome::Retry`].
    pub fn on_evict<S: Store>(
        &mut self,
        at: Moment,
        tag: BlockTag,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> Started {
        let started = self.requesters.on_evict(&mut context!(self, at, store, out), tag);
        self.go_on_with_batches(at, store, out);
        started
    }

    /// A thread allocates `len` bytes in the memory of `home`.
    pub fn on_alloc<S: Store>(
        &mut self,
        at: Moment,
        len: u64,
        home: NodeId,
        discipline: Discipline,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> Started {
        let cx = &mut context!(self, at, store, out);
        self.allocation.on_alloc(cx, &mut self.requesters, len, home, discipline)
    }

    /// A thread frees the allocation that starts at this address; if an incarnation of its home is given, only one that was made in
    /// that. In another one it is gone: its home is down.
    pub fn on_free<S: Store>(
        &mut self,
        at: Moment,
        allocation: (GlobalAddr, Option<Incarnation>),
        store: &mut S,
        out: &mut Vec<Effect>,
    ) -> Started {
        let cx = &mut context!(self, at, store, out);
        let started = self.allocation.on_free(cx, &mut self.requesters, allocation);
        self.go_on_with_batches(at, store, out);
        started
    }

    /// The thread that had this frame pinned is done, and the store says that an agent waits for it.
    pub fn on_unpinned<S: Store>(
        &mut self,
        at: Moment,
        frame: FrameId,
        store: &mut S,
        out: &mut Vec<Effect>,
    ) {
        let cx = &mut context!(self, at, store, out);
        self.reporter.on_unpinned(cx, frame);
        self.cache_agent.on_unpinned(cx, frame);
        self.requesters.on_unpinned(cx, frame);
        self.go_on_with_batches(at, store, out);
    }

    /// Does what is due.
    pub fn on_deadline<S: Store>(&mut self, at: Moment, store: &mut S, out: &mut Vec<Effect>) {
        let cx = &mut context!(self, at, store, out);
        self.requesters.on_deadline(cx);
        self.cache_agent.on_deadline(cx);
        self.allocation.repeat_calls(cx);
        self.allocation.retry_allocs(cx, &mut self.requesters);
        self.home.on_move_deadline(cx);
        self.reporter.on_deadline(cx);
        if cx.now >= self.next_epoch {
            self.next_epoch = cx.now + cx.config.epoch;
            self.cache_agent.on_epoch(cx);
            self.home.on_epoch(cx);
            if let Some(shadow) = &mut self.shadow {
                shadow.on_epoch(cx);
            }
        }
        if self.copies.is_on() {
            self.on_deadline_of_copies(at, store, out);
            self.go_on_with_batches(at, store, out);
        }
    }

    /// This block of this node's memory is hot: its entry shall move to the switch now, if it is free.
    pub fn on_hot<S: Store>(&mut self, at: Moment, tag: BlockTag, store: &mut S, out: &mut Vec<Effect>) {
        self.home.want_added(&mut context!(self, at, store, out), tag);
    }

    // Getters

    /// The next moment at which [`Node::on_deadline`] has something to do.
    pub fn next_deadline(&self) -> Nanos {
        self.next_epoch
            .min(self.requesters.next_deadline())
            .min(self.cache_agent.next_deadline())
            .min(self.allocation.next_deadline())
            .min(self.home.migration.next_deadline())
            .min(self.reporter.next_deadline())
            .min(self.copies.next_deadline())
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How the node was set up.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The directory of this node's home agent.
    pub fn directory(&self) -> &crate::coherence::home::directory::Directory {
        &self.home.directory
    }

    /// The discipline that a block of this node's memory obeys, while it belongs to an allocation.
    pub fn discipline_of(&self, tag: BlockTag) -> Option<Discipline> {
        self.home_of(tag)?.chunks.discipline_of(tag)
    }

    /// The home of a block whose memory this node keeps.
    pub(crate) fn home_of(&self, tag: BlockTag) -> Option<&HomeAgent> {
        if tag.home() == self.config.id { Some(&self.home) } else { self.copied.get(&tag.home()) }
    }

    /// The node that a packet goes to, which may name a memory with copies; inside, `None` is the switch. `None`: nobody serves that
    /// memory, as far as this node knows.
    #[inline]
    pub fn place_of(&self, to: wire::Endpoint) -> Option<Option<NodeId>> {
        match to {
            wire::Endpoint::HomeAgent(memory) => self.copies.server(memory).map(Some),
            to => Some(to.node()),
        }
    }

    /// What this node may do with a block that it has cached like this: with one that is protected until its batch is committed, all.
    pub fn access(&self, tag: BlockTag, cached: Access) -> Access {
        self.copies.access(tag, cached)
    }

    /// The memories with copies that this node has whole, counted from the first of them; and in which epoch that is so.
    pub fn whole_memories(&self) -> (SwitchEpoch, Copyset) {
        (self.config.switch_epoch, self.copies.whole_at(self.config.id))
    }

    /// The entry of a block in the directory of its home, if that is here.
    pub fn entry(&self, tag: BlockTag) -> Option<crate::coherence::home::directory::Entry> {
        Some(self.home_of(tag)?.directory.get(tag))
    }

    /// The blocks of this node's memory that have ended with the packet that came last.
    pub fn ended(&self) -> &[BlockRange] {
        &self.home.ended
    }

    /// True if this node's allocator takes something back in that home's memory, and the home may not know.
    pub fn takes_back_at(&self, home: NodeId) -> bool {
        self.allocation.takes_back_at(home)
    }

    /// Whether a lock may carry these bytes of this node's memory: whole words, all in live blocks of that discipline.
    ///
    /// # Errors
    /// Why not.
    pub fn may_lock(&self, lock: GlobalAddr, len: u32) -> Result<(), Refusal> {
        let len = wire::region_bytes(len);
        if !lock.bits().is_multiple_of(8) || !len.is_multiple_of(8) {
            return Err(Refusal::WrongLength);
        }
        let block = self.config.block;
        // A region without bytes is the place where it would begin.
        let end = lock.offset() + u64::from(len.max(1));
        if end > self.config.memory {
            return Err(Refusal::Unallocated);
        }
        let first = lock.offset() >> block.shift() << block.shift();
        for offset in (first..end).step_by(block.len()) {
            match self.discipline_of(block.tag(GlobalAddr::new(self.config.id, offset))) {
                Some(Discipline::Locked) => {}
                Some(_) => return Err(Refusal::WrongDiscipline),
                None => return Err(Refusal::Unallocated),
            }
        }
        Ok(())
    }

    /// What is under way with memory with copies, for messages about a rack that does not come to rest.
    pub fn unsettled_copies(&self) -> Option<alloc::string::String> {
        let waits = |(memory, home): (&NodeId, &HomeAgent)| Some((*memory, home.rebuilding_from()?));
        let homes: Vec<_> = self.copied.iter().filter_map(waits).collect();
        (!self.copies.is_quiet() || !self.copies.is_settled() || !homes.is_empty())
            .then(|| alloc::format!("{:?}, rebuilding {homes:?}, reports {:?}", self.copies, self.reporter))
    }

    /// Bytes of this node's memory in live blocks, and in chunks that allocators have.
    pub fn memory_in_use(&self) -> (u64, u64) {
        (self.home.chunks.live_bytes(), self.home.chunks.granted_bytes())
    }

    /// Bytes in live blocks of these memories with copies, counted from the first of them, as far as this node keeps them.
    pub fn bytes_in_copies(&self, memories: Copyset) -> u64 {
        let nth = |memory: &NodeId| NodeId(memory.0 - self.config.nodes as u16);
        let kept = self.copied.iter().filter(|(memory, _)| memories.contains(nth(memory)));
        kept.map(|(_, home)| home.chunks.live_bytes()).sum()
    }

    /// Allocations that this node's allocator has handed out and not got back.
    pub fn live_allocations(&self) -> u64 {
        self.allocation.allocator.usage().live_objects
    }

    /// True if no operation, event, unlock, migration or call is in flight: nothing will happen without input.
    pub fn is_quiet(&self) -> bool {
        self.requesters.is_quiet()
            && self.allocation.is_quiet()
            && !self.is_recovering()
            && self.copies.is_quiet()
            && !self.home.migration.is_moving()
            && self.home.migration.backlog() == 0
    }

    /// Asserts what must always hold between calls.
    ///
    /// # Panics
    /// If it does not, with the state that shows it.
    pub fn invariants<S: Store>(&self, store: &S) {
        self.requesters.invariants();
        self.cache_agent.invariants(store);
        self.home.invariants();
        self.copies.invariants(store);
        self.copied.values().for_each(HomeAgent::invariants);
    }
}

impl<R: Rules> core::fmt::Debug for Node<R> {
    /// What is in flight, for messages about a state that should not be.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.config.id)
            .field("epoch", &self.config.switch_epoch)
            .field("down", &self.down)
            .field("requesters", &self.requesters)
            .field("round_trip", &self.requesters.round_trip)
            .field("parked", &self.cache_agent.parked)
            .field("migration", &self.home.migration)
            .field("allocation_quiet", &self.allocation.is_quiet())
            .field("reports", &self.reporter)
            .field("home", &self.home.rebuilding_from())
            .field("copies", &self.copies)
            .finish_non_exhaustive()
    }
}
