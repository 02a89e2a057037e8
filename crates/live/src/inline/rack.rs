//! The actors of an embedded rack, and how a thread delivers messages between them.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use node::Node;
use node::locks::LockNode;
use switch::coherence::Switch;
use wire::{Nanos, NodeId};

use super::chains::{EPOCH, INCARNATION, InlineChains, MTU};
use crate::actor::{Actor, NodeMachines, SwitchPrograms};
use crate::config::Config;
use crate::memory::{NodeMemory, StoreOf};
use crate::waiting::Oversubscription;

/// A rack in this process.
pub struct InlineRack {
    pub(super) memories: Arc<[NodeMemory]>,
    pub(super) switch: Actor<SwitchPrograms>,
    pub(super) nodes: Box<[Actor<NodeMachines>]>,
    pub(super) oversubscription: Oversubscription,
    /// Made when a store is.
    pub(super) chains: OnceLock<Box<InlineChains>>,
    pub(super) steering: Option<crate::config::Steering>,
    started: Instant,
    /// When somebody should look again whether any node has something due.
    pub(super) patrol: AtomicU64,
}

impl InlineRack {
    /// Builds the rack: memory, machines, actors.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn new(config: &Config) -> Self {
        let nodes = config.ids().map(|id| {
            let node = Node::new(config.node(id));
            let deadline = node.next_deadline();
            Actor::new(NodeMachines::new(node, config.locks(id)), deadline)
        });
        let mut switch = SwitchPrograms::new(config, MTU);
        switch.relay.0.begin_epoch(EPOCH, &vec![Some(INCARNATION); config.nodes]);
        Self {
            switch: Actor::new(switch, Nanos::MAX),
            nodes: nodes.collect(),
            memories: (0..config.nodes).map(|_| config.memory()).collect(),
            oversubscription: Oversubscription::default(),
            chains: OnceLock::new(),
            steering: config.steers(),
            started: Instant::now(),
            patrol: AtomicU64::new(0),
        }
    }

    /// Nanoseconds since the rack was built.
    #[inline]
    pub fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// How many nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// A node's memory.
    pub(super) fn memory(&self, node: NodeId) -> &NodeMemory {
        &self.memories[node.index()]
    }

    /// The nodes' memories, for hits.
    pub const fn memories(&self) -> &Arc<[NodeMemory]> {
        &self.memories
    }

    /// Looks at a node's machines, between two inputs.
    pub fn with_node<R>(&self, node: NodeId, look: impl FnOnce(&Node) -> R) -> R {
        look(&self.nodes[node.index()].enter().node)
    }

    /// Looks at the switch, between two packets; with the packets that it received and sent.
    pub fn with_switch<R>(&self, look: impl FnOnce(&Switch, u64, u64) -> R) -> R {
        let programs = self.switch.enter();
        look(&programs.coherence, programs.received, programs.sent)
    }

    /// Looks at a node's locks, between two inputs.
    pub fn with_locks<R>(&self, node: NodeId, look: impl FnOnce(&LockNode) -> R) -> R {
        look(&self.nodes[node.index()].enter().locks.machine)
    }

    /// Asserts what must always hold, of every actor.
    ///
    /// # Panics
    /// If it does not.
    pub fn check_invariants(&self) {
        for (index, actor) in self.nodes.iter().enumerate() {
            let id = NodeId(u16::try_from(index).expect("at most 64 nodes"));
            let machines = actor.enter();
            machines.node.invariants(&StoreOf::new(&self.memories, id));
            machines.locks.machine.invariants();
        }
        self.switch.enter().chip().invariants();
    }
}
