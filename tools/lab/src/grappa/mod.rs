//! Grappa (Nelson et al., ATC '15), the memory without a cache that Concordia is compared with.
//!
//! Each application thread is a core that owns a part of its node's memory. Whoever wants to access a block sends a
//! *delegate* to the core that owns it, which executes it and replies:
//!
//! ```text
//!   core of the asker ─> partner core ══ network ══> partner core ─> core of the block: executes
//!                     <─              <═════════════              <─ reply
//! ```
//!
//! Messages of a node's cores to one other node leave through one of its cores, the *partner* for that node, so that
//! they can travel together; they are handed on at the other end likewise. Grappa has thousands of workers a core,
//! whose messages fill buffers. With Concordia's benchmark a core has one worker, which waits for its own delegate: it
//! is idle, flushes, and every message travels alone. So aggregation gains nothing here and costs two more cores on
//! the way, "too many remote delegation operations and worker scheduling events" (Concordia, section 7.2.1).
//!
//! Not there: work stealing, and any answer to loss (MPI is reliable). Idle flushing is immediate: the poll of a core
//! that computes is the rack's ("between two of its operations").
//!
//! What must always hold: every delegate is executed exactly once, by the core of its block.

mod costs;
mod message;
mod operations;
pub(crate) mod pagerank;

use sim::coherence::Contents;
use sim::system::{Call, Envelope, Operation, Place, Processor, Progress, Service, System, ThreadId};
use wire::{BlockSize, BlockTag, Nanos, NodeId};

use crate::home::{Blocks, Heap, LockTable};
pub use costs::Costs;
pub use message::{Body, Message};
use operations::Phase;

/// A rack's Grappa.
#[derive(Clone, Copy, Debug)]
pub struct GrappaConfig {
    /// Nodes, 1 to 64.
    pub nodes: usize,
    /// Cores on each, which are its application threads.
    pub threads: usize,
    /// What a core owns at a time; an access is inside one.
    pub block: BlockSize,
    /// Bytes of memory of every node.
    pub memory: u64,
    /// What is kept of blocks.
    pub contents: Contents,
    /// What takes how much processor time.
    pub costs: Costs,
}

impl GrappaConfig {
    /// So many nodes with four cores and 1 GiB of memory each. Grappa's own unit is 64 B, a cache line, "block
    /// cyclic" over all cores; the home of an allocation is chosen by its application here, as in all systems.
    pub const fn new(nodes: usize) -> Self {
        Self {
            nodes,
            threads: 4,
            block: BlockSize::MIN,
            memory: 1 << 30,
            contents: Contents::Stamps,
            costs: Costs::PAPER,
        }
    }
}

/// What was counted since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Accesses of a core to its own memory.
    pub local: u64,
    /// Delegates that were executed for another core.
    pub delegates: u64,
    /// Messages that a partner core passed on.
    pub passed_on: u64,
}

struct Machine {
    memory: Blocks,
    locks: LockTable,
    heap: Heap,
}

/// A rack that runs Grappa.
pub struct Grappa {
    config: GrappaConfig,
    machines: Vec<Machine>,
    threads: Vec<Phase>,
    counters: Counters,
}

impl Grappa {
    /// A rack where nothing is allocated.
    ///
    /// # Panics
    /// If there are no nodes, more than 64, or no threads.
    pub fn new(config: GrappaConfig) -> Self {
        let GrappaConfig { nodes, threads, block, contents, memory, .. } = config;
        assert!((1..=wire::Copyset::NODES).contains(&nodes), "a rack has 1 to 64 nodes, not {nodes}");
        assert!(threads > 0, "a node has cores");
        let machine = |node: usize| Machine {
            memory: Blocks::new(contents, block),
            locks: LockTable::default(),
            heap: Heap::new(NodeId(u16::try_from(node).expect("at most 64")), block, memory),
        };
        Self {
            machines: (0..nodes).map(machine).collect(),
            threads: vec![Phase::Idle; nodes * threads],
            counters: Counters::default(),
            config,
        }
    }

    /// What it was made with.
    pub const fn config(&self) -> &GrappaConfig {
        &self.config
    }

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The number of writes that a block has seen.
    pub fn stamp(&self, addr: wire::GlobalAddr) -> u32 {
        let tag = self.config.block.tag(addr);
        self.machines[tag.home().index()].memory.stamp(self.index(tag))
    }

    /// Whether no operation is in flight.
    pub fn is_quiet(&self) -> bool {
        self.threads.iter().all(|phase| *phase == Phase::Idle)
    }

    fn node_of(&self, core: ThreadId) -> NodeId {
        NodeId(u16::try_from(usize::from(core.0) / self.config.threads).expect("at most 64 nodes"))
    }

    fn core(&self, node: NodeId, number: usize) -> ThreadId {
        ThreadId(u16::try_from(node.index() * self.config.threads + number).expect("fewer than 2^16 cores"))
    }

    fn index(&self, tag: BlockTag) -> usize {
        (tag.addr().offset() >> self.config.block.shift()) as usize
    }

    /// The core that owns a block.
    pub fn owner(&self, tag: BlockTag) -> ThreadId {
        // Fibonacci hashing: the high bits of the product depend on all bits of the block's number.
        let hash = (self.index(tag) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.core(tag.home(), (hash % self.config.threads as u64) as usize)
    }

    /// The core of `node` through which messages to and from `other` pass.
    fn partner(&self, node: NodeId, other: NodeId) -> ThreadId {
        self.core(node, other.index() % self.config.threads)
    }

    /// Sends a message on its way from a core.
    fn send(&self, call: &mut Call<'_, Message>, at: ThreadId, destination: ThreadId, body: Body) {
        let (here, there) = (self.node_of(at), self.node_of(destination));
        let to = if here == there {
            destination
        } else if at == self.partner(here, there) {
            self.partner(there, here)
        } else {
            self.partner(here, there)
        };
        call.send(Message { from: at, to, destination, body });
    }
}

impl System for Grappa {
    type Message = Message;

    fn envelope(&self, message: &Message) -> Envelope {
        Envelope {
            from: Place::Node(self.node_of(message.from)),
            to: Place::Node(self.node_of(message.to)),
            sender: Processor::Thread(message.from),
            receiver: Processor::Thread(message.to),
            bytes: Message::BYTES,
            service: Service::Datagram,
        }
    }

    fn cost(&self, message: &Message) -> Nanos {
        let remote = self.node_of(message.from) != self.node_of(message.to);
        let leaves = self.node_of(message.to) != self.node_of(message.destination);
        self.config.costs.handling(message, remote, leaves)
    }

    fn on_message(&mut self, call: &mut Call<'_, Message>, message: &Message) {
        let Message { to: here, destination, body, .. } = *message;
        if here != destination {
            self.counters.passed_on += 1;
            return self.send(call, here, destination, body);
        }
        match body {
            Body::Delegate { asker } => self.on_delegate(call, asker),
            Body::Reply => self.on_reply(call, here),
            Body::Lock { asker, tag, write, once } => self.on_lock(call, here, asker, tag, write, once),
            Body::LockReply { granted } => self.on_lock_reply(call, here, granted),
            Body::Unlock { tag, write } => self.on_unlock(call, here, tag, write),
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
}
