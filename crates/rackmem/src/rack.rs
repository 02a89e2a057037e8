//! A rack of memory, and what can be seen of it from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use live::inline::InlineRack;
use live::memory::NodeMemory;
use live::place::Operations;
use wire::{Copyset, NodeId};

use crate::config::{Config, ConfigError};
use crate::handle::NodeHandle;

/// A rack of machines with one shared memory. Cheap to clone; all clones are the same rack.
#[derive(Clone)]
pub struct Rack {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    rack: InlineRack,
    pub(crate) config: Config,
    /// Handles made so far: every one has a random stream of its own.
    handles: AtomicU64,
    /// Accesses that needed no message, as far as the handles have said.
    pub(crate) hits: Box<[AtomicU64]>,
}

impl Inner {
    /// What an application's threads ask of the nodes in this process.
    pub(crate) fn operations(&self) -> &dyn Operations {
        &self.rack
    }

    /// The memory of a node in this process.
    pub(crate) fn memory(&self, node: NodeId) -> &NodeMemory {
        self.rack.memory(node)
    }
}

impl Rack {
    /// A rack inside this process. It has no threads of its own: its machines run on the threads that use it.
    ///
    /// ```
    /// use rackmem::{Config, Discipline, NodeId, Rack};
    ///
    /// let rack = Rack::embedded(Config { nodes: 2, memory: 1 << 20, cache: 1 << 20, ..Config::default() })?;
    /// let mut here = rack.node(NodeId(0));
    /// let mut there = rack.node(NodeId(1));
    ///
    /// let addr = here.alloc(64, NodeId(1), Discipline::Coherent)?;
    /// here.write_word(addr, 42)?;
    /// assert_eq!(there.read_word(addr)?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the configuration is impossible; the error says what to change.
    pub fn embedded(config: Config) -> Result<Self, ConfigError> {
        let rack = InlineRack::new(&config.checked()?);
        let hits = (0..config.nodes).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { inner: Arc::new(Inner { rack, config, handles: AtomicU64::new(0), hits }) })
    }

    /// A handle for one thread that works on this node.
    ///
    /// # Panics
    /// If the rack has no such node.
    pub fn node(&self, node: NodeId) -> NodeHandle {
        let nodes = self.inner.config.nodes;
        assert!(node.index() < nodes, "this rack has nodes 0 to {}, and no {node}", nodes - 1);
        let number = self.inner.handles.fetch_add(1, Ordering::Relaxed);
        NodeHandle::new(Arc::clone(&self.inner), node, number)
    }

    /// How the rack was set up.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// What has happened so far. Handles report their hits when they miss and when they are dropped.
    pub fn counters(&self) -> Counters {
        let nodes: Vec<NodeCounters> = (0..self.inner.config.nodes)
            .map(|index| {
                let node = NodeId(u16::try_from(index).expect("at most 64 nodes"));
                self.inner.rack.with_node(node, |machine| NodeCounters {
                    hits: self.inner.hits[index].load(Ordering::Relaxed),
                    protocol: machine.counters().clone(),
                    memory_live: machine.memory_in_use().0,
                    memory_granted: machine.memory_in_use().1,
                    allocations: machine.live_allocations(),
                    directory_bytes: machine.directory().bytes(),
                })
            })
            .collect();
        let switch = self.inner.rack.with_switch(|switch, received, sent| SwitchCounters {
            packets_received: received,
            packets_sent: sent,
            occupancy: switch.occupancy(),
            program: switch.counters().clone(),
        });
        Counters { nodes, switch }
    }

    /// Asserts, at every place of the rack, what must always hold between two messages.
    ///
    /// # Panics
    /// If it does not: a bug in rackmem.
    pub fn check_invariants(&self) {
        self.inner.rack.check_invariants();
    }
}

impl std::fmt::Debug for Rack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rack").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

/// What the places of a rack have counted.
#[derive(Clone, Debug)]
pub struct Counters {
    /// By node.
    pub nodes: Vec<NodeCounters>,
    /// The switch's.
    pub switch: SwitchCounters,
}

/// What one node has counted.
#[derive(Clone, Debug)]
pub struct NodeCounters {
    /// Accesses to one block that found it in the cache.
    pub hits: u64,
    /// What its protocol machines have counted.
    pub protocol: node::Counters,
    /// Bytes of its memory in blocks that hold allocations.
    pub memory_live: u64,
    /// Bytes of its memory that allocators have in chunks.
    pub memory_granted: u64,
    /// Allocations that its allocator has handed out, wherever their memory is.
    pub allocations: u64,
    /// Bytes of its home agent's directory.
    pub directory_bytes: usize,
}

/// What the switch has counted.
#[derive(Clone, Debug)]
pub struct SwitchCounters {
    /// Coherence packets that reached its program.
    pub packets_received: u64,
    /// Packets that its program sent.
    pub packets_sent: u64,
    /// Entries that it keeps now.
    pub occupancy: usize,
    /// What its program has counted.
    pub program: switch::flowcc::Counters,
}

impl Counters {
    /// Accesses to one block that found it in the cache.
    pub fn hits(&self) -> u64 {
        self.nodes.iter().map(|node| node.hits).sum()
    }

    /// Accesses that needed a coherence event: data misses and upgrades, counted once however often they were
    /// refused.
    pub fn misses(&self) -> u64 {
        let sum = self.protocol();
        let events: u64 = sum.events[1..=3].iter().sum();
        let refused: u64 = sum.refused.iter().sum();
        events.saturating_sub(refused)
    }

    /// The sum of what the nodes' machines have counted.
    pub fn protocol(&self) -> node::Counters {
        let mut sum = node::Counters::default();
        self.nodes.iter().for_each(|node| sum.add(&node.protocol));
        sum
    }
}

/// The most nodes that a rack can have.
pub const MOST_NODES: usize = Copyset::NODES;
