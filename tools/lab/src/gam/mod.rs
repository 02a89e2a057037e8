//! GAM (Cai et al., VLDB 2018), the directory-based memory that Concordia is compared with.
//!
//! ```text
//!   application threads ── hit ──> cache of a node: fully associative, LRU
//!        │ miss                       ^
//!        v                            │ grants, fetches, invalidations: the node's background threads
//!   directory at the block's home: Unshared, Shared, Dirty, and in between To-Shared, To-Dirty, To-Unshared
//! ```
//!
//! The design is that of the paper and of the public code (see section 3.1 of the Concordia paper for a summary),
//! written anew as state machines:
//! - The home orders everything. A request that meets a transition of its block waits in the block's queue
//!   (`directory`, `home_agent`).
//! - A read miss is answered by the home, or by the dirty owner, which sends the block to the requester *and* home.
//! - For a write, the home invalidates all sharers, **collects the acknowledgements itself**, and then grants.
//! - Accesses of the home's own threads go to its memory, past its directory, without network (`operations`).
//! - A full cache gives up what was used least recently: a dirty block is written back and acknowledged, of a shared
//!   one the home gets notice (`cache`, `cache_agent`).
//!
//! Two races, which the public code resolves by waiting or not at all, are resolved here so that nothing can hang
//! and every copy is current: an invalidation that overtakes the block it is about (`cache_agent::on_invalidate`), and
//! accesses to a block that is being written back, which wait.
//!
//! Not there: GAM's log (Concordia's authors switched it off), its asynchronous writes and fences (every write is
//! waited for here; the benchmark's threads wait for each operation), and any answer to loss: the network is reliable
//! and keeps the order between two places, as reliable connections of RDMA do (`channel`).
//!
//! What must always hold: at any moment a block has one writer, or readers that all have its latest contents.

mod cache;
mod cache_agent;
mod channel;
mod config;
mod costs;
mod directory;
mod home_agent;
mod message;
mod operations;
mod preload;
mod properties;
mod rules;

use std::collections::BTreeMap;

use sim::system::{Call, Envelope, Operation, Place, Processor, Progress, Service, System, ThreadId};
use wire::{BlockTag, Nanos, NodeId};

use crate::home::{Blocks, Heap, LockTable, Payloads};
use cache::Cache;
use cache_agent::Busy;
use channel::Channel;
pub use config::{GamConfig, HandOver};
pub use costs::Costs;
use directory::Directory;
pub use message::{Body, Message};
use operations::Thread;
pub use rules::{AllRules, Rules};

/// What was counted since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Accesses that needed nobody but the thread itself.
    pub hits: u64,
    /// Accesses that had to ask, or to wait for one that asked.
    pub misses: u64,
    /// Messages over the network that homes received, or sent as homes.
    pub home_messages: u64,
    /// Requests that met a transition, and waited in the block's queue.
    pub queued: u64,
    /// Clean blocks that made room.
    pub evicted_shared: u64,
    /// Dirty blocks that made room.
    pub evicted_dirty: u64,
}

/// One node.
struct Machine {
    /// The directory of its own blocks.
    directory: Directory,
    /// Their contents.
    memory: Blocks,
    /// The blocks of others that it caches.
    cache: Cache,
    /// Those of them that are between two states.
    busy: BTreeMap<BlockTag, Busy>,
    locks: LockTable,
    heap: Heap,
}

/// A rack that runs GAM.
pub struct Gam<R: Rules = AllRules> {
    config: GamConfig,
    machines: Vec<Machine>,
    threads: Vec<Thread>,
    channels: Vec<Channel>,
    payloads: Payloads,
    counters: Counters,
    /// The number of writes that each block has seen; only with [`GamConfig::check`].
    latest: BTreeMap<BlockTag, u32>,
    rules: core::marker::PhantomData<R>,
}

impl<R: Rules> Gam<R> {
    /// A rack where nothing is allocated or cached.
    ///
    /// # Panics
    /// If there are no nodes, more than 64, or no threads or agents.
    pub fn new(config: GamConfig) -> Self {
        let GamConfig { nodes, threads, agents, block, contents, .. } = config;
        assert!((1..=wire::Copyset::NODES).contains(&nodes), "a rack has 1 to 64 nodes, not {nodes}");
        assert!(threads > 0 && agents > 0, "a node has threads and agents");
        let machine = |node: usize| Machine {
            directory: Directory::default(),
            memory: Blocks::new(contents, block),
            cache: Cache::new(nodes, block, contents, config.cache),
            busy: BTreeMap::new(),
            locks: LockTable::default(),
            heap: Heap::new(NodeId(u16::try_from(node).expect("at most 64")), block, config.memory),
        };
        Self {
            machines: (0..nodes).map(machine).collect(),
            threads: vec![Thread::default(); nodes * threads],
            channels: (0..nodes * nodes * usize::from(agents)).map(|_| Channel::default()).collect(),
            payloads: Payloads::default(),
            counters: Counters::default(),
            latest: BTreeMap::new(),
            rules: core::marker::PhantomData,
            config,
        }
    }

    /// What it was made with.
    pub const fn config(&self) -> &GamConfig {
        &self.config
    }

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    fn node_of(&self, thread: ThreadId) -> NodeId {
        NodeId(u16::try_from(usize::from(thread.0) / self.config.threads).expect("at most 64 nodes"))
    }

    fn machine(&mut self, node: NodeId) -> &mut Machine {
        &mut self.machines[node.index()]
    }

    /// The number of a block in its home's memory.
    fn index(&self, tag: BlockTag) -> usize {
        (tag.addr().offset() >> self.config.block.shift()) as usize
    }

    /// The background thread that handles a block's messages on a node. Neighbouring blocks go to different ones.
    fn agent_of(&self, node: NodeId, tag: BlockTag) -> Processor {
        Processor::Agent(node, self.agent_number(tag))
    }

    fn agent_number(&self, tag: BlockTag) -> u8 {
        // Fibonacci hashing: the high bits of the product depend on all bits of the block's number.
        let hash = (self.index(tag) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (hash % u64::from(self.config.agents)) as u8
    }

    /// Sends a message about a block.
    fn send(
        &mut self,
        call: &mut Call<'_, Message>,
        sender: Processor,
        from: NodeId,
        to: NodeId,
        tag: BlockTag,
        body: Body,
    ) {
        let number = if from == to {
            0
        } else {
            self.counters.home_messages += u64::from(from == tag.home()) + u64::from(to == tag.home());
            let channel = self.channel(from, to, tag);
            self.channels[channel].number()
        };
        call.send(Message { from, to, sender, number, tag, body });
    }

    fn channel(&self, from: NodeId, to: NodeId, tag: BlockTag) -> usize {
        let agents = usize::from(self.config.agents);
        (from.index() * self.config.nodes + to.index()) * agents + usize::from(self.agent_number(tag))
    }

    fn handle(&mut self, call: &mut Call<'_, Message>, message: Message) {
        let Message { from, to, tag, .. } = message;
        match message.body {
            Body::Request { access, has_copy } => self.on_request(call, to, from, tag, access, has_copy),
            Body::Fetched { data } => self.on_fetched(call, to, tag, data),
            Body::InvalidateAck => self.on_invalidate_ack(call, to, from, tag),
            Body::EvictShared => self.on_evict_shared(to, from, tag),
            Body::WriteBack { data } => self.on_write_back(call, to, from, tag, data),
            Body::Grant { access, data } => self.on_grant(call, to, from, tag, access, data),
            Body::Fetch { access, requester } => self.on_fetch(call, to, tag, access, requester),
            Body::Invalidate => self.on_invalidate(call, to, tag),
            Body::WriteBackAck => self.on_write_back_ack(call, to, tag),
            Body::Work { thread, access } => self.on_work(call, to, tag, thread, access),
            Body::Lock { thread, write, once } => self.on_lock(call, to, tag, thread, write, once),
            Body::LockAnswer { thread, granted } => self.on_lock_answer(call, thread, granted),
            Body::Unlock { write } => self.on_unlock(call, to, tag, write),
        }
    }
}

impl<R: Rules> System for Gam<R> {
    type Message = Message;

    fn envelope(&self, message: &Message) -> Envelope {
        let data = message.body.carries_data();
        Envelope {
            from: Place::Node(message.from),
            to: Place::Node(message.to),
            sender: message.sender,
            receiver: self.agent_of(message.to, message.tag),
            bytes: Message::HEADER + if data { self.config.block.bytes() as u32 } else { 0 },
            service: if data { Service::Write } else { Service::Datagram },
        }
    }

    fn cost(&self, message: &Message) -> Nanos {
        self.config.costs.handling(&message.body)
    }

    fn on_message(&mut self, call: &mut Call<'_, Message>, message: &Message) {
        if message.from == message.to {
            return self.handle(call, *message);
        }
        let channel = self.channel(message.from, message.to, message.tag);
        self.channels[channel].arrived(*message);
        while let Some(message) = self.channels[channel].next() {
            self.handle(call, message);
        }
    }

    fn attempt(
        &mut self,
        call: &mut Call<'_, Message>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        self.operate(call, thread, operation)
    }

    fn next_deadline(&self, _node: NodeId) -> Nanos {
        Nanos::MAX
    }

    fn on_deadline(&mut self, _call: &mut Call<'_, Message>, _node: NodeId) {}

    fn invariants(&mut self) {
        if let Some(violation) = self.violation() {
            panic!("{violation}");
        }
    }
}
