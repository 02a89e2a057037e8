//! A whole rack: coherent blocks and locks that carry their data, on the same nodes, in the same memory.
//!
//! It runs inside a [`Rack`](crate::rack::Rack). It is [`FlowCc`] and [`Locks`], composed by the product's own machines of a
//! whole node ([`RackNode`]): the allocator of one says what the other may lock, and what it takes back. So this file has
//! no protocol; it has what passes between the two.
//!
//! # Who runs what
//! Blocks as in [`coherence`]. For locks a node has one more background thread, which is the home of its memory's regions, too:
//! its table of live blocks is asked, so no NIC could answer.
//!
//! # What must always hold
//! - All machines of the rack are in one epoch, and hear of it in the same call.
//! - A node's memory is one. It is with the blocks, and lent to the locks while one of their machines runs: what
//!   comes late to memory that belongs to another discipline by now is found there, by the checks of that discipline.
//! - A rack whose applications take no locks runs as one of [`FlowCc`] alone does, to the nanosecond, until a machine stops.

use node::locks::LockEffect;
use node::{Effect, Moment, RackNode};
use wire::{AllRules, Nanos, NodeId, Rules};

use crate::coherence::{self, FlowCc};
use crate::locks::{self, Locks};
use crate::system::{Call, Envelope, Fault, Operation, Progress, System, ThreadId};

/// Background threads that a node needs.
pub const AGENTS: usize = coherence::AGENTS + locks::AGENTS;

/// A rack with blocks and locks.
#[derive(Clone, Debug)]
pub struct JointConfig {
    /// Blocks, the allocator, and what both have: nodes, threads, memory.
    pub blocks: coherence::FlowCcConfig,
    /// Bytes of copies of locks on every node.
    pub lock_copies: u64,
    /// Entries of locks that the switch has capacity for.
    pub lock_entries: usize,
    /// What locks take of processors.
    pub costs: locks::Costs,
}

impl JointConfig {
    /// Of the locks: as blocks are, where both have it.
    fn locks(&self) -> locks::SimLocksConfig {
        let Self { blocks, lock_copies, lock_entries, costs } = self;
        locks::SimLocksConfig {
            threads: blocks.threads,
            contents: blocks.contents,
            cache: *lock_copies,
            switch_entries: *lock_entries,
            agent: coherence::AGENTS as u8,
            blades: false,
            epoch: coherence::FIRST,
            retransmission: blocks.retransmission,
            costs: *costs,
            check: blocks.check,
            ..locks::SimLocksConfig::new(blocks.nodes)
        }
    }
}

/// What travels.
#[derive(Clone, Copy, Debug)]
pub enum SimMessage {
    /// About blocks and allocations.
    Block(coherence::SimMessage),
    /// About locks.
    Lock(locks::SimMessage),
}

/// All machines of a rack.
pub struct Joint<R: Rules = AllRules> {
    blocks: FlowCc<R>,
    locks: Locks<R>,
}

impl Joint {
    /// Machines in their initial state.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn new(config: JointConfig) -> Self {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Joint<R> {
    /// Machines in their initial state, in which some rules of the protocols may not hold: for checkers.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn with_rules(rules: R, config: JointConfig) -> Self {
        let mut locks = Locks::with_rules(rules, config.locks());
        locks.homes.clear();
        Self { blocks: FlowCc::with_rules(rules, config.blocks), locks }
    }

    /// The blocks, and the allocator.
    pub const fn blocks(&self) -> &FlowCc<R> {
        &self.blocks
    }

    /// The locks.
    pub const fn locks(&self) -> &Locks<R> {
        &self.locks
    }

    /// True until every live node has reported to every home, and every home knows again what it is home of.
    pub fn is_recovering(&self) -> bool {
        self.nodes().any(|node| self.blocks.is_up(node) && self.locks.node(node).is_recovering())
            || self.blocks.is_recovering()
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<R> {
        (0..self.blocks.config().nodes).map(|node| NodeId(u16::try_from(node).expect("at most 64 nodes")))
    }

    /// Lends the nodes' memory to the locks, and takes it back.
    fn with_locks<T>(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        action: impl FnOnce(&mut Self, &mut Call<'_, locks::SimMessage>) -> T,
    ) -> T {
        core::mem::swap(&mut self.blocks.homes, &mut self.locks.homes);
        let result = call.inside(SimMessage::Lock, |call| action(self, call));
        core::mem::swap(&mut self.blocks.homes, &mut self.locks.homes);
        result
    }

    /// Something is done to all machines of a node that writes nothing to its memory but blocks.
    fn call_all(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        node: NodeId,
        input: impl FnOnce(
            RackNode<'_, R>,
            Moment,
            (&mut coherence::StoreOf<'_>, &mut Vec<Effect>),
            (&mut locks::StoreOf<'_>, &mut Vec<LockEffect>),
        ),
    ) {
        let Self { blocks, locks } = self;
        let mut lock_out = core::mem::take(&mut locks.effects);
        call.inside(SimMessage::Block, |call| {
            blocks.call_node(call, node, |node_machine, at, store, out| {
                let (machine, mut lock_store) = locks.parts(node);
                let all = RackNode { node: node_machine, locks: machine };
                input(all, at, (store, out), (&mut lock_store, &mut lock_out));
            });
        });
        locks.effects = lock_out;
        let by = (node, locks.agent(node));
        call.inside(SimMessage::Lock, |call| locks.hand_on(call, by));
    }

    /// A packet about blocks arrives. What has ended with it, the locks are told.
    fn block_arrives(&mut self, call: &mut Call<'_, SimMessage>, sim_message: &coherence::SimMessage) {
        let Self { blocks, locks } = self;
        let Some(node) = sim_message.packet().to.node() else {
            return call.inside(SimMessage::Block, |call| blocks.on_message(call, sim_message));
        };
        call.inside(SimMessage::Block, |call| {
            blocks.arrives(call, sim_message, |node_machine, at, message, store, out| {
                let (machine, _) = locks.parts(node);
                RackNode { node: node_machine, locks: machine }.on_packet(at, message, store, out);
            });
        });
        let block = blocks.config().block;
        for range in blocks.node(node).ended() {
            locks.given_back(range.first.addr(), range.bytes(block));
        }
    }
}

impl<R: Rules> System for Joint<R> {
    type Message = SimMessage;

    fn envelope(&self, sim_message: &SimMessage) -> Envelope {
        match sim_message {
            SimMessage::Block(sim_message) => self.blocks.envelope(sim_message),
            SimMessage::Lock(sim_message) => self.locks.envelope(sim_message),
        }
    }

    fn cost(&self, sim_message: &SimMessage) -> Nanos {
        match sim_message {
            SimMessage::Block(sim_message) => self.blocks.cost(sim_message),
            SimMessage::Lock(sim_message) => self.locks.cost(sim_message),
        }
    }

    fn on_message(&mut self, call: &mut Call<'_, SimMessage>, sim_message: &SimMessage) {
        match sim_message {
            SimMessage::Block(sim_message) => self.block_arrives(call, sim_message),
            SimMessage::Lock(sim_message) => self.with_locks(call, |both, call| {
                let Self { blocks, locks } = both;
                match sim_message.packet().to.node() {
                    None => locks.on_message(call, sim_message),
                    Some(node) => locks.arrives(call, sim_message, |locks, at, message, store, out| {
                        let all = &mut blocks.nodes[node.index()];
                        RackNode { node: all, locks }.on_lock_packet(at, message, store, out);
                    }),
                }
            }),
        }
    }

    fn attempt(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        match operation {
            Operation::Region(_) => {
                self.with_locks(call, |both, call| both.locks.attempt(call, thread, operation))
            }
            _ => call.inside(SimMessage::Block, |call| self.blocks.attempt(call, thread, operation)),
        }
    }

    fn next_deadline(&self, node: NodeId) -> Nanos {
        match self.blocks.is_up(node) {
            true => self.blocks.next_deadline(node).min(self.locks.next_deadline(node)),
            false => Nanos::MAX,
        }
    }

    fn on_deadline(&mut self, call: &mut Call<'_, SimMessage>, node: NodeId) {
        self.call_all(call, node, |mut all, at, blocks, locks| all.on_deadline(at, blocks, locks));
    }

    fn on_fault(&mut self, call: &mut Call<'_, SimMessage>, fault: Fault) {
        if let Fault::NodeStops(node) = fault {
            self.locks.forget(node);
        }
        let Some(coherence::NewEpoch { view, dump }) = self.blocks.change(fault) else { return };
        self.locks.begin_epoch(view.epoch);
        for node in view.live().iter() {
            self.call_all(call, node, |mut all, at, blocks, locks| {
                all.on_new_epoch(at, (&view, dump.as_ref()), blocks, locks);
            });
        }
    }

    fn invariants(&mut self) {
        self.blocks.invariants();
        self.locks.invariants();
    }
}
