//! The places of an embedded rack, and how a thread carries messages between them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use node::{Backoff, Config, Directory, Effect, Message, Moment, Node};
use switch::flowcc::{self, Switch};
use wire::{BlockSize, Endpoint, Nanos, NodeId, SwitchEpoch};

use super::courier::Courier;
use super::node_place::NodePlace;
use super::place::{Input, Place};
use super::switch_place::SwitchPlace;
use crate::memory::{NodeMemory, StoreOf};
use crate::waiting::Crowding;

/// How an embedded rack is set up. The public API checks what a user may have got wrong; here it is asserted.
#[derive(Clone, Debug)]
pub struct RackConfig {
    /// How many nodes: 1 to 64.
    pub nodes: usize,
    /// The unit of coherence.
    pub block: BlockSize,
    /// Bytes of cache on every node.
    pub cache: u64,
    /// Bytes of memory that every node is home of.
    pub memory: u64,
    /// Entries of the switch's directory.
    pub switch_entries: usize,
    /// Where directory entries are kept.
    pub directory: Directory,
    /// Conflicting requests wait in line at whoever has the lock, and are not refused.
    pub queue: bool,
    /// How long an epoch of hotness lasts.
    pub epoch: Nanos,
}

/// A rack in this process.
pub struct InlineRack {
    pub(super) memories: Box<[NodeMemory]>,
    switch: Place<SwitchPlace>,
    pub(super) nodes: Box<[Place<NodePlace>]>,
    pub(super) crowding: Crowding,
    started: Instant,
    /// When somebody should look again whether any node has something due.
    patrol: AtomicU64,
}

/// How often nodes that nobody works on are looked after.
const PATROL: Nanos = Nanos::from_millis(1);

impl InlineRack {
    /// Builds the rack: memory, machines, places.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn new(config: &RackConfig) -> Self {
        let switch = Switch::new(&flowcc::Config {
            nodes: config.nodes,
            entries: config.switch_entries,
            epoch: SwitchEpoch(0),
            queue: config.queue,
        })
        .expect("the FlowCC program fits the chip");
        let ids = (0..config.nodes).map(|id| NodeId(u16::try_from(id).expect("at most 64 nodes")));
        let nodes = ids.map(|id| {
            let node = Node::new(Config {
                block: config.block,
                chunk: node::allocator::ChunkSize::for_memory(config.memory, config.block),
                directory: config.directory,
                switch_entries: config.switch_entries,
                epoch: config.epoch,
                queue: config.queue,
                backoff: Backoff { first: Nanos(400), most: Nanos::from_micros(50) },
                ..Config::new(id, config.nodes, config.memory)
            });
            let deadline = node.next_deadline();
            Place::new(NodePlace::new(node), deadline)
        });
        Self {
            switch: Place::new(SwitchPlace { switch, received: 0, sent: 0 }, Nanos::MAX),
            nodes: nodes.collect(),
            memories: (0..config.nodes)
                .map(|_| NodeMemory::new(config.block, config.cache, config.memory))
                .collect(),
            crowding: Crowding::default(),
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

    /// A node's memory, for hits.
    #[inline]
    pub fn memory(&self, node: NodeId) -> &NodeMemory {
        &self.memories[node.index()]
    }

    /// Looks at a node's machines, between two inputs.
    pub fn with_node<R>(&self, node: NodeId, look: impl FnOnce(&Node) -> R) -> R {
        look(&self.nodes[node.index()].enter().node)
    }

    /// Looks at the switch, between two packets; with the packets that it received and sent.
    pub fn with_switch<R>(&self, look: impl FnOnce(&Switch, u64, u64) -> R) -> R {
        let place = self.switch.enter();
        look(&place.switch, place.received, place.sent)
    }

    /// Asserts what must always hold, at every place.
    ///
    /// # Panics
    /// If it does not.
    pub fn check_invariants(&self) {
        for (index, place) in self.nodes.iter().enumerate() {
            let id = NodeId(u16::try_from(index).expect("at most 64 nodes"));
            place.enter().node.invariants(&StoreOf::new(&self.memories, id));
        }
        self.switch.enter().switch.invariants();
    }

    /// Where an endpoint is: nodes by number, then the switch.
    fn place_of(&self, endpoint: Endpoint) -> usize {
        endpoint.node().map_or(self.nodes.len(), NodeId::index)
    }

    /// Lets a thread do something with a node's machines, and then carries everything that follows from it.
    pub(super) fn visit<R>(
        &self,
        node: NodeId,
        courier: &mut Courier,
        now: Nanos,
        action: impl FnOnce(&mut NodePlace, Moment, &mut StoreOf<'_>, &mut Vec<Effect>) -> R,
    ) -> R {
        let place = &self.nodes[node.index()];
        let mut machine = place.enter();
        let at = Moment { now: machine.at(now), random: courier.random() };
        let mut store = StoreOf::new(&self.memories, node);
        let result = action(&mut machine, at, &mut store, &mut courier.effects);
        self.dispatch(&mut machine, courier);
        self.drain_node(place, &mut machine, node, courier, at.now);
        drop(machine);
        if place.is_waiting() {
            courier.to_run.push(node.index());
        }
        self.carry(courier, now);
        result
    }

    /// Runs every place that this thread has left something for, until there is none.
    pub(super) fn carry(&self, courier: &mut Courier, now: Nanos) {
        while let Some(index) = courier.to_run.pop() {
            if index == self.nodes.len() {
                self.run_switch(courier);
            } else {
                self.run_node(NodeId(index as u16), courier, now);
            }
        }
    }

    fn run_node(&self, node: NodeId, courier: &mut Courier, now: Nanos) {
        let place = &self.nodes[node.index()];
        while place.is_waiting() {
            // Whoever holds the place looks again after letting go.
            let Some(mut machine) = place.try_enter() else { return };
            self.drain_node(place, &mut machine, node, courier, now);
        }
    }

    fn drain_node(
        &self,
        place: &Place<NodePlace>,
        machine: &mut NodePlace,
        node: NodeId,
        courier: &mut Courier,
        now: Nanos,
    ) {
        let mut store = StoreOf::new(&self.memories, node);
        let now = machine.at(now);
        loop {
            let mut batch = std::mem::take(&mut courier.batch);
            place.collect(&mut batch);
            if batch.is_empty() {
                courier.batch = batch;
                break;
            }
            for input in batch.drain(..) {
                let at = Moment { now, random: courier.random() };
                match input {
                    Input::Message(message) => {
                        machine.node.on_packet(at, &message, &mut store, &mut courier.effects);
                    }
                    Input::Unpinned(frame) => {
                        machine.node.on_unpinned(at, frame, &mut store, &mut courier.effects);
                    }
                }
                self.dispatch(machine, courier);
            }
            courier.batch = batch;
        }
        place.set_deadline(machine.node.next_deadline());
    }

    /// Puts the effects of a node's call where they belong, still under the node's lock: that keeps messages
    /// from one place to another in order.
    fn dispatch(&self, machine: &mut NodePlace, courier: &mut Courier) {
        for effect in courier.effects.drain(..) {
            match effect {
                Effect::Send(message) => {
                    let to = self.place_of(message.packet.to);
                    self.leave(to, Input::Message(message));
                    courier.to_run.push(to);
                }
                Effect::Completed { slot, outcome } => machine.completed(slot, outcome),
            }
        }
    }

    fn leave(&self, place: usize, input: Input) {
        match self.nodes.get(place) {
            Some(node) => node.leave(input),
            None => self.switch.leave(input),
        }
    }

    fn run_switch(&self, courier: &mut Courier) {
        while self.switch.is_waiting() {
            let Some(mut place) = self.switch.try_enter() else { return };
            loop {
                let mut batch = std::mem::take(&mut courier.batch);
                self.switch.collect(&mut batch);
                if batch.is_empty() {
                    courier.batch = batch;
                    break;
                }
                for input in batch.drain(..) {
                    let Input::Message(message) = input else { unreachable!("the switch has no frames") };
                    let Courier { switch_effects, to_run, .. } = courier;
                    place.on_packet(&message.packet, switch_effects, |packet| {
                        let to = self.place_of(packet.to);
                        self.leave(to, Input::Message(Message::from(packet)));
                        to_run.push(to);
                    });
                }
                courier.batch = batch;
            }
        }
    }

    /// Runs what is due: at this thread's own node, and now and then at those that nobody works on.
    pub(super) fn run_due(&self, node: NodeId, courier: &mut Courier, now: Nanos) {
        if self.nodes[node.index()].deadline() <= now {
            self.run_deadline(node, courier, now);
        }
        let patrol = self.patrol.load(Ordering::Relaxed);
        if now.0 < patrol {
            return;
        }
        let next = (now + PATROL).0;
        if self.patrol.compare_exchange(patrol, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            for index in 0..self.nodes.len() {
                if self.nodes[index].deadline() <= now {
                    self.run_deadline(NodeId(index as u16), courier, now);
                }
            }
        }
    }

    fn run_deadline(&self, node: NodeId, courier: &mut Courier, now: Nanos) {
        self.visit(node, courier, now, |place, at, store, out| place.node.on_deadline(at, store, out));
    }
}
