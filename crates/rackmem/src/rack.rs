//! A rack of memory, and what can be seen of it from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use live::actor::{AtNode, ThreadContext};
use live::chains::{ServerCounts, SteeringCounts};
use live::inline::InlineRack;
use live::memory::NodeMemory;
use live::memory::pages::MappedCounts;
use live::networked::NetworkedNode;
use transport::PeerId;
use wire::{BlockTag, Copyset, Discipline, Nanos, NodeId, Refusal};

use crate::attach::Attached;
use crate::config::{Config, ConfigError};
use crate::handle::NodeHandle;
use crate::lock::marks::Marks;
use crate::locked::AllViews;
use crate::locked::lasting::HeldLasting;
use crate::named::NameService;
use crate::peers::PeerWatch;

/// A rack of machines with one shared memory. Cheap to clone; all clones are the same rack.
#[derive(Clone)]
pub struct Rack {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) places: Places,
    memories: Memories,
    /// Bytes of each node's memory that a handle reads and writes by itself: none where a daemon does it.
    pub(crate) reach: u64,
    pub(crate) config: Config,
    /// Handles made so far: every one has a random stream of its own.
    handles: AtomicU64,
    /// Accesses that needed no message, as far as the handles have said.
    hits: Box<[AtomicU64]>,
    /// The names that the nodes in this process keep, and those of each memory with copies, which it may come to keep.
    names: Box<[NameService]>,
    /// The locks with copies that threads of this process are inside of.
    pub(crate) lasting: HeldLasting,
    /// What is known of who has block locks with copies.
    pub(crate) marks: Marks,
    /// What this process sees of regions behind pointers.
    pub(crate) views: AllViews,
}

impl Inner {
    /// All places of the rack are in this process.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.places, Places::Embedded(_))
    }
}

/// The memories of the nodes in this process.
enum Memories {
    /// All of them.
    All(Arc<[NodeMemory]>),
    /// The only one's. Of an attached rack: a cache in which nothing is ever found, and copies of the locks that its threads hold.
    One(Arc<NodeMemory>),
}

/// Where the places of the rack are.
pub(crate) enum Places {
    /// All of them in this process.
    Embedded(Box<InlineRack>),
    /// One node in this process.
    Joined {
        node: Arc<NetworkedNode>,
        /// Every access looks at the node's lease.
        strict: bool,
    },
    /// None here: a daemon has the node.
    Attached(Arc<Attached>),
}

impl Drop for Inner {
    /// When the last handle is gone, so is what this process has of the rack: sockets, files, threads.
    fn drop(&mut self) {
        if let Places::Joined { node, .. } = &self.places {
            node.end_service();
        }
    }
}

impl Inner {
    /// An application's thread at a node of this process.
    pub(crate) fn at<'a>(&'a self, node: NodeId, context: &'a mut ThreadContext) -> AtNode<'a> {
        match &self.places {
            Places::Embedded(rack) => rack.at(node, context),
            Places::Joined { node, .. } => node.at(context),
            Places::Attached(_) => unreachable!("an attached handle asks its daemon"),
        }
    }

    /// Time since the rack's start, as this process counts it.
    pub(crate) fn now(&self) -> Nanos {
        match &self.places {
            Places::Embedded(rack) => rack.now(),
            Places::Joined { node, .. } => node.now(),
            Places::Attached(attached) => attached.now(),
        }
    }

    /// The epoch that this process is in; an embedded rack has but one.
    pub(crate) fn epoch(&self) -> u32 {
        match &self.places {
            Places::Embedded(_) => 0,
            Places::Joined { node, .. } => node.epoch().0,
            Places::Attached(attached) => attached.epoch(),
        }
    }

    /// The names that a node keeps, or that are kept in a memory with copies, as far as this process can know them.
    pub(crate) fn names(&self, keeper: NodeId) -> Option<&NameService> {
        match &self.places {
            Places::Embedded(_) => self.names.get(keeper.index()),
            Places::Joined { node, .. } => match keeper.index().checked_sub(self.config.places()) {
                Some(nth) => self.names.get(1 + nth),
                None => self.names.first().filter(|_| node.id() == keeper),
            },
            Places::Attached(_) => None,
        }
    }

    /// What they do with chains.
    pub(crate) fn chains(&self) -> &dyn live::chains::Chains {
        match &self.places {
            Places::Embedded(rack) => &**rack,
            Places::Joined { node, .. } => &**node,
            Places::Attached(_) => unreachable!("an attached handle asks its daemon"),
        }
    }

    /// The memory of a node in this process.
    #[inline]
    pub(crate) fn memory(&self, node: NodeId) -> &NodeMemory {
        match &self.memories {
            Memories::All(all) => &all[node.index()],
            Memories::One(memory) => memory,
        }
    }

    /// The daemon that has the node, if this process only uses one.
    pub(crate) fn attached(&self) -> Option<&Arc<Attached>> {
        match &self.places {
            Places::Attached(attached) => Some(attached),
            _ => None,
        }
    }

    /// The node that this process is, in a rack of processes.
    pub(crate) fn joined(&self) -> Option<&Arc<NetworkedNode>> {
        match &self.places {
            Places::Joined { node, .. } => Some(node),
            _ => None,
        }
    }

    /// The discipline of a live block whose home is in this process.
    pub(crate) fn discipline_of(&self, tag: BlockTag) -> Option<Discipline> {
        match &self.places {
            Places::Embedded(rack) => rack.with_node(tag.home(), |node| node.discipline_of(tag)),
            Places::Joined { node, .. } => node.with_node(|node| node.discipline_of(tag)),
            Places::Attached(_) => None,
        }
    }

    /// What every access has to look at, if none may ever be stale.
    pub(crate) fn strict_lease(&self) -> Option<Arc<NetworkedNode>> {
        match &self.places {
            Places::Joined { node, strict: true } => Some(Arc::clone(node)),
            _ => None,
        }
    }

    /// Accesses on a node that needed no message, as far as handles have said; and adds some.
    pub(crate) fn hits(&self, node: NodeId, more: u64) -> u64 {
        match &self.places {
            Places::Embedded(_) => self.hits[node.index()].fetch_add(more, Ordering::Relaxed) + more,
            Places::Joined { node, .. } => node.hits(more),
            Places::Attached(_) => 0,
        }
    }

    /// Bytes of the largest region that a lock can guard.
    pub(crate) fn largest_region(&self) -> u64 {
        match &self.places {
            Places::Embedded(_) => u64::from(wire::packet::MAX_PAYLOAD),
            Places::Joined { .. } | Places::Attached(_) => self.config.lock_region,
        }
    }

    /// The nodes in this process.
    pub(crate) fn here(&self) -> impl Iterator<Item = NodeId> + use<> {
        let ids = match &self.places {
            Places::Embedded(rack) => 0..rack.node_count(),
            Places::Joined { node, .. } => node.id().index()..node.id().index() + 1,
            Places::Attached(attached) => attached.node().index()..attached.node().index() + 1,
        };
        ids.map(|index| NodeId(u16::try_from(index).expect("at most 64 nodes")))
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
        config.check()?;
        let rack = InlineRack::new(&config);
        Ok(Self::of(Places::Embedded(Box::new(rack)), config))
    }

    /// What there is to tell about the other places of the rack of processes that this one has joined; none on an
    /// embedded rack.
    pub fn peers(&self) -> Option<PeerWatch> {
        let node = self.inner.joined()?;
        let handshakes = node.transport().handshakes();
        let (nodes, all) = (Arc::downgrade(node), handshakes.clone());
        let others =
            (0..self.inner.config.places()).map(|id| NodeId(u16::try_from(id).expect("at most 64 nodes")));
        let others: Vec<_> = others.filter(|id| *id != node.id()).collect();
        // Who is in the rack can be reached, or requests to it wait for ever.
        let expected = move || {
            let (Some(node), Some(all)) = (nodes.upgrade(), &all) else { return Vec::new() };
            let living = others.iter().filter(|id| node.is_alive(**id)).map(|id| PeerId::node(*id));
            [PeerId::SWITCH].into_iter().chain(living.filter(|peer| all.was_greeted(*peer))).collect()
        };
        Some(PeerWatch::new(handshakes, expected))
    }

    pub(crate) fn of(places: Places, config: Config) -> Self {
        let hits = (0..config.nodes).map(|_| AtomicU64::new(0)).collect();
        let (memories, reach) = match &places {
            Places::Embedded(rack) => (Memories::All(Arc::clone(rack.memories())), config.memory),
            Places::Joined { node, .. } => (Memories::One(Arc::clone(node.memory())), config.memory),
            Places::Attached(_) => (Memories::One(Arc::new(NodeMemory::new(config.block_size, 0, 0))), 0),
        };
        let names = match &places {
            Places::Embedded(_) => config.ids().map(|id| NameService::new(id, 0, false)).collect(),
            Places::Joined { node, .. } => {
                let own = NameService::new(node.id(), node.incarnation().0, node.has_returned());
                let with_copies = (config.places()..config.memories())
                    .map(|id| NameService::in_memory(NodeId(u16::try_from(id).expect("at most 64"))));
                std::iter::once(own).chain(with_copies).collect()
            }
            Places::Attached(_) => [].into(),
        };
        let handles = AtomicU64::new(0);
        let (lasting, marks, views) = (HeldLasting::default(), Marks::default(), AllViews::default());
        let inner =
            Arc::new(Inner { places, memories, reach, config, handles, hits, names, lasting, marks, views });
        if let Places::Joined { node, .. } = &inner.places {
            let rack = Arc::downgrade(&inner);
            node.serve_names(Box::new(move |from, words| {
                // A process that is about to end keeps no names.
                let rack = rack.upgrade().ok_or(Refusal::NodeDown)?;
                crate::named::serve(&rack, from, words)
            }));
        }
        Self { inner }
    }

    /// One that a daemon is joined to.
    pub(crate) fn of_attached(attached: Attached, config: Config) -> Self {
        Self::of(Places::Attached(Arc::new(attached)), config)
    }

    /// A handle for one thread that works on this process's node, or on that of the daemon that it is attached to.
    ///
    /// # Panics
    /// If the rack is embedded, and has more than one node: say which, with [`Rack::node`].
    pub fn here(&self) -> NodeHandle {
        let mut here = self.inner.here();
        let (first, second) = (here.next(), here.next());
        assert!(second.is_none(), "an embedded rack has all its nodes here: say which, with Rack::node");
        self.node(first.expect("a rack has a node here"))
    }

    /// True once the rest of the rack has declared this process's node dead, or the daemon has gone that it is attached to: every
    /// operation fails from then on.
    pub fn is_fenced(&self) -> bool {
        match &self.inner.places {
            Places::Embedded(_) => false,
            Places::Joined { node, .. } => node.lease().is_fenced(),
            Places::Attached(attached) => attached.is_detached(),
        }
    }

    /// True if this node is up, as far as this process knows; an attached one knows of the daemon's node only.
    pub fn is_up(&self, node: NodeId) -> bool {
        match &self.inner.places {
            Places::Embedded(_) => node.index() < self.inner.config.nodes,
            Places::Joined { node: own, .. } if own.id() == node => !own.lease().is_fenced(),
            Places::Joined { node: own, .. } => node.index() < own.nodes_known() && own.is_alive(node),
            Places::Attached(attached) => attached.node() == node && !attached.is_detached(),
        }
    }

    /// How often the rack has changed, as far as this process knows: deaths, returns and restarts of the switch. Of an attached process,
    /// when it was attached.
    pub fn epoch(&self) -> u32 {
        self.inner.epoch()
    }

    /// True while the rest of the rack cannot have declared this process's node dead.
    pub fn holds_lease(&self) -> bool {
        match &self.inner.places {
            Places::Embedded(_) => true,
            Places::Joined { node, .. } => node.lease().holds(node.now()),
            Places::Attached(attached) => !attached.is_detached(),
        }
    }

    /// What this process's nodes are in the middle of, for people who look at a rack that does not get on. It waits for
    /// no thread that is stuck, but on an embedded rack.
    pub fn in_flight(&self) -> String {
        match &self.inner.places {
            Places::Embedded(rack) => {
                self.inner.here().map(|id| rack.with_node(id, |machine| format!("{machine:#?}\n"))).collect()
            }
            Places::Joined { node, .. } => node.in_flight(),
            Places::Attached(attached) => format!("{attached:#?}\n"),
        }
    }

    /// This process's node leaves the rack in order: what only it has cached goes home, then the others go on without it.
    /// Every operation fails from now on. Blocks in this node's own memory are gone for the others
    /// ([`Error::NodeDown`](crate::Error::NodeDown)), and what it kept with copies has one fewer until it is copied again: to have that done
    /// before, [`drain`](Self::drain) it. True if everything has arrived within `timeout`. Does nothing on
    /// an embedded rack, nor on an attached one.
    pub fn leave(&self, timeout: Duration) -> bool {
        match &self.inner.places {
            Places::Embedded(_) | Places::Attached(_) => true,
            Places::Joined { node, .. } => node.leave(timeout),
        }
    }

    /// What the transport of this process's node has done; none on an embedded rack.
    pub fn transport_counts(&self) -> Option<transport::Counts> {
        match &self.inner.places {
            Places::Embedded(_) | Places::Attached(_) => None,
            Places::Joined { node, .. } => Some(node.transport().counters().counts()),
        }
    }

    /// What the NIC of this process's node has counted; none on an embedded rack, which needs no NIC.
    pub fn nic_counts(&self) -> Option<live::networked::verbs::NicCounts> {
        self.inner.joined().map(|node| node.nic_counts())
    }

    /// What the metadata servers of chains in this process have done.
    pub fn chain_counts(&self) -> ServerCounts {
        match &self.inner.places {
            Places::Embedded(rack) => {
                let mut sum = ServerCounts::default();
                self.inner.here().for_each(|node| sum.add(&rack.chain_counts(node)));
                sum
            }
            Places::Joined { node, .. } => node.chain_counts(),
            Places::Attached(_) => ServerCounts::default(),
        }
    }

    /// What the switch of an embedded rack has done for chains; none in a rack of processes, whose switch reports itself.
    pub fn steering_counts(&self) -> Option<SteeringCounts> {
        match &self.inner.places {
            Places::Embedded(rack) => Some(rack.steering_counts()),
            Places::Joined { .. } | Places::Attached(_) => None,
        }
    }

    /// A handle for one thread that works on this node.
    ///
    /// # Panics
    /// If the rack has no such node in this process.
    pub fn node(&self, node: NodeId) -> NodeHandle {
        let nodes = self.inner.nodes_known();
        assert!(node.index() < nodes, "this rack has nodes 0 to {}, and no {node}", nodes - 1);
        assert!(self.inner.here().any(|here| here == node), "{node} is in another process");
        let number = self.inner.handles.fetch_add(1, Ordering::Relaxed);
        NodeHandle::new(Arc::clone(&self.inner), node, number)
    }

    /// How the rack was set up.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// What has happened so far at the places in this process. Handles report their hits when they miss and when
    /// they are dropped.
    pub fn counters(&self) -> Counters {
        let of = |node: NodeId, machine: &node::Node, mapped: MappedCounts| NodeCounters {
            hits: self.inner.hits(node, 0),
            protocol: machine.counters().clone(),
            mapped,
            memory_live: machine.memory_in_use().0,
            memory_granted: machine.memory_in_use().1,
            allocations: machine.live_allocations(),
            directory_bytes: machine.directory().bytes(),
        };
        let here = self.inner.here();
        match &self.inner.places {
            Places::Embedded(rack) => Counters {
                nodes: here
                    .map(|id| rack.with_node(id, |machine| of(id, machine, MappedCounts::default())))
                    .collect(),
                switch: Some(rack.with_switch(|switch, received, sent| SwitchCounters {
                    packets_received: received,
                    packets_sent: sent,
                    occupancy: switch.occupancy(),
                    program: switch.counters().clone(),
                })),
            },
            Places::Joined { node, .. } => Counters {
                nodes: here
                    .map(|id| node.with_node(|machine| of(id, machine, node.mapped_counts())))
                    .collect(),
                switch: None,
            },
            Places::Attached(_) => Counters { nodes: Vec::new(), switch: None },
        }
    }

    /// Asserts, at every place of an embedded rack, what must always hold between two messages.
    ///
    /// # Panics
    /// If it does not: a bug in rackmem.
    pub fn check_invariants(&self) {
        if let Places::Embedded(rack) = &self.inner.places {
            rack.check_invariants();
        }
    }
}

impl std::fmt::Debug for Rack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rack").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

/// A number that no other incarnation of a node has: the standard library's hash keys come from the system.
pub(crate) fn random_session() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

/// What the places of a rack have counted.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Of each node in this process, in order.
    pub nodes: Vec<NodeCounters>,
    /// The switch's, if that is in this process.
    pub switch: Option<SwitchCounters>,
}

/// What one node has counted.
#[derive(Clone, Debug)]
pub struct NodeCounters {
    /// Accesses to one block that found it in the cache.
    pub hits: u64,
    /// What its protocol machines have counted.
    pub protocol: node::Counters,
    /// What it has mapped, and what was done for those who access it.
    pub mapped: MappedCounts,
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
    pub program: switch::coherence::Counters,
}

impl Counters {
    /// Accesses to one block that found it in the cache.
    pub fn hits(&self) -> u64 {
        self.nodes.iter().map(|node| node.hits).sum()
    }

    /// Accesses that needed a coherence event: data misses, upgrades, and reads where the block is, counted once however often they were
    /// refused.
    pub fn misses(&self) -> u64 {
        let sum = self.protocol();
        sum.granted_accesses()
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
