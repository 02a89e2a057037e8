//! FlowCC on the simulated rack: the real nodes and the real switch, and what they run on.
//!
//! It runs inside a [`Rack`](crate::rack::Rack). The machines are those of the live rack, called under the same
//! contract; here they get their processors, their packets' sizes and their costs.
//!
//! | file | holds |
//! | --- | --- |
//! | `config` | what can be set |
//! | `costs` | what takes how much processor time, with sources |
//! | `cache`, `memory`, `store` | frames, home memory, and the machines' view of them |
//! | `shown` | what PEEKs brought |
//! | `operations` | what a thread's operation does |
//! | `control` | what happens when a machine stops or comes back |
//! | `preload` | state that is there when a run begins |
//! | `properties` | what must hold after every event |
//!
//! # Who runs what
//! Application threads run their requesters: they send the requests and handle what comes back. Agent 0 of a node is
//! its cache agent. Agent 1 is its home agent, with the allocator and the shadow (Concordia, section 6: the two agents
//! run on two background threads).
//!
//! Blocks travel by RDMA writes straight into their frames; everything else is a raw packet (section 6).
//!
//! What must always hold: see [`node::Node`] and [`switch::coherence`].

mod cache;
mod config;
mod control;
mod costs;
mod memory;
mod operations;
mod preload;
mod properties;
mod shown;
mod store;

use node::{Effect, Message, Moment, Node};
use switch::coherence::{self as program, Resubmit, Switch, wait_queue};
use wire::packet::HEADER_BYTES;
use wire::{AllRules, Endpoint, Nanos, NodeId, Packet, PacketKind, Rules, SlotId};

use crate::home::Home;
use crate::system::{
    Call, Envelope, Fault, Operation, Place, Processor, Progress, Service, System, ThreadId,
};
use control::Control;
use memory::Memory;
use operations::{Joined, Waits};
use properties::Latest;
use shown::Shown;

pub use crate::home::Contents;
pub use cache::Placement;
pub use config::FlowCcConfig;
pub(crate) use control::{FIRST, NewEpoch};
pub use costs::Costs;
pub(crate) use store::StoreOf;

/// The background thread of the cache agent.
const CACHE_AGENT: u8 = 0;
/// The background thread of the home agent, the allocator and the shadow.
const HOME_AGENT: u8 = 1;
/// Background threads that a node needs.
pub const AGENTS: usize = 2;

/// What a NIC takes with the doorbell beside a header, so that it has nothing to fetch: 256 bytes with it. (ConnectX-4 and -5
/// take several hundred; "Design Guidelines for High Performance RDMA Systems", USENIX ATC '16, uses up to 256.)
const INLINE: u32 = 256 - HEADER_BYTES as u32;

/// What travels.
#[derive(Clone, Copy, Debug)]
pub enum SimMessage {
    /// A packet, with its block.
    Message(Message),
    /// A packet between two passes through the switch.
    Again(Resubmit),
}

impl SimMessage {
    /// The packet.
    pub const fn packet(&self) -> &Packet {
        match self {
            Self::Message(message) => &message.packet,
            Self::Again(again) => &again.packet,
        }
    }
}

/// All machines of a rack.
pub struct FlowCc<R: Rules = AllRules> {
    rules: R,
    config: FlowCcConfig,
    pub(crate) nodes: Vec<Node<R>>,
    switch: Switch<R>,
    memories: Vec<Memory>,
    pub(crate) homes: Vec<Home>,
    waits: Waits,
    control: Control,
    /// The number of the last write.
    writes: u32,
    /// Accesses that found their block.
    hits: u64,
    latest: Option<Latest>,
    /// A block of zeroes, to look at.
    zeroes: Box<[core::sync::atomic::AtomicU64]>,
    shown: Shown,
    effects: Vec<Effect>,
    from_switch: Vec<program::Effect>,
}

impl FlowCc {
    /// Machines in their initial state.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn new(config: FlowCcConfig) -> Self {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> FlowCc<R> {
    /// Machines in their initial state, in which some rules of the protocol may not hold: for checkers.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn with_rules(rules: R, config: FlowCcConfig) -> Self {
        let of_switch = program::SwitchConfig {
            nodes: config.nodes,
            entries: config.switch_entries,
            epoch: control::FIRST,
            queue: config.queue,
            lock_slots: config.lock_slots,
            peeks: config.peeks.most > 0,
            copies: false,
        };
        let ids = (0..config.nodes).map(|index| NodeId(u16::try_from(index).expect("at most 64 nodes")));
        let memory = |_| Memory::new(config.block, (config.cache, config.placement), config.contents);
        let home = |_| Home::new(config.block, config.memory, config.contents);
        Self {
            rules,
            nodes: ids.clone().map(|id| Node::with_rules(rules, config.of_node(id))).collect(),
            switch: Switch::with_rules(rules, &of_switch).expect("the program fits the chip"),
            memories: ids.clone().map(memory).collect(),
            homes: ids.map(home).collect(),
            waits: Waits::new(config.nodes, config.threads, config.lock_slots),
            control: Control::new(config.nodes, NodeId(0)),
            writes: 0,
            hits: 0,
            latest: config.check.then(Latest::default),
            zeroes: crate::home::zeroes(config.block),
            shown: Shown::new(config.nodes * config.threads),
            effects: Vec::new(),
            from_switch: Vec::new(),
            config,
        }
    }

    // Getters

    /// How it was set up.
    pub const fn config(&self) -> &FlowCcConfig {
        &self.config
    }

    /// A node's machines.
    pub fn node(&self, node: NodeId) -> &Node<R> {
        &self.nodes[node.index()]
    }

    /// The switch.
    pub const fn switch(&self) -> &Switch<R> {
        &self.switch
    }

    /// Accesses that found their block in the cache.
    pub const fn hits(&self) -> u64 {
        self.hits
    }

    /// What all nodes have counted.
    pub fn counters(&self) -> node::Counters {
        let mut sum = node::Counters::default();
        self.nodes.iter().for_each(|node| sum.add(node.counters()));
        sum
    }

    // Calls

    /// Calls a node's machines, and hands on what they want done.
    pub(crate) fn call_node<T>(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        node: NodeId,
        input: impl FnOnce(&mut Node<R>, Moment, &mut StoreOf<'_>, &mut Vec<Effect>) -> T,
    ) -> T {
        let result = self.input(call, node, input);
        self.hand_on(call, node);
        self.waits.try_for_room(node, |thread| call.wake(thread));
        result
    }

    /// Calls a node's machines. What they want done is left in `effects`.
    fn input<T>(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        node: NodeId,
        input: impl FnOnce(&mut Node<R>, Moment, &mut StoreOf<'_>, &mut Vec<Effect>) -> T,
    ) -> T {
        #[allow(clippy::cast_possible_truncation, reason = "32 random bits")]
        let at = Moment { now: call.now, random: call.random.bits() as u32 };
        let mut store = StoreOf {
            all: &mut self.memories,
            homes: &mut self.homes,
            me: node,
            block: self.config.block,
            contents: self.config.contents,
            latest: self.latest.as_mut(),
        };
        input(&mut self.nodes[node.index()], at, &mut store, &mut self.effects)
    }

    fn hand_on(&mut self, call: &mut Call<'_, SimMessage>, node: NodeId) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send(message) => call.send(SimMessage::Message(message)),
                Effect::Completed { slot, outcome } => {
                    if let node::Outcome::Peeked(data) = outcome {
                        self.shown.show(
                            (&self.memories, &self.homes),
                            self.config.contents,
                            self.waits.owner(node, slot),
                            data,
                        );
                    }
                    let joined = self.config.costs.joined;
                    self.waits.completed(node, slot, outcome, |thread, Joined(waited_for_another)| {
                        call.wake_after(thread, if waited_for_another { joined } else { Nanos::ZERO });
                    });
                }
            }
        }
    }

    /// A packet arrives, at a node for whoever handles it there.
    pub(crate) fn arrives(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        sim_message: &SimMessage,
        on_packet: impl FnOnce(&mut Node<R>, Moment, &Message, &mut StoreOf<'_>, &mut Vec<Effect>),
    ) {
        if matches!(sim_message.packet().to, Endpoint::Shadow(_)) && !self.control.shadow_up {
            return;
        }
        match (sim_message, sim_message.packet().to.node()) {
            (SimMessage::Message(message), Some(node)) => {
                self.call_node(call, node, |node, at, store, out| on_packet(node, at, message, store, out));
            }
            _ => self.call_switch(call, sim_message),
        }
    }

    fn call_switch(&mut self, call: &mut Call<'_, SimMessage>, sim_message: &SimMessage) {
        match sim_message {
            SimMessage::Message(message) => self.switch.on_packet(&message.packet, &mut self.from_switch),
            SimMessage::Again(again) => self.switch.on_resubmit(*again, &mut self.from_switch),
        }
        for effect in self.from_switch.drain(..) {
            match effect {
                program::Effect::Send(packet) => call.send(SimMessage::Message(packet.into())),
                program::Effect::Resubmit(again) => call.resubmit(SimMessage::Again(again)),
            }
        }
    }

    /// Which processor an endpoint is on.
    fn processor(&self, endpoint: Endpoint, packet: &Packet) -> Processor {
        match endpoint {
            Endpoint::Switch => Processor::Switch,
            Endpoint::Requester(node) => match slot_of(node, packet) {
                SlotId::MIGRATION | SlotId::RECLAIM => Processor::Agent(node, HOME_AGENT),
                slot => Processor::Thread(self.waits.owner(node, slot)),
            },
            Endpoint::CacheAgent(node) => Processor::Agent(node, CACHE_AGENT),
            Endpoint::HomeAgent(node) | Endpoint::Allocator(node) | Endpoint::Shadow(node) => {
                Processor::Agent(node, HOME_AGENT)
            }
        }
    }
}

/// The slot of a node's requesters that a packet is about. What goes from one in a queue to the next names the other's
/// event, and in `arg` that of the one before.
fn slot_of(node: NodeId, packet: &Packet) -> SlotId {
    let before = wait_queue::code_in(packet.arg).map(|code| wait_queue::decode(code).0);
    let to_the_one_before = matches!(packet.kind, PacketKind::Follow | PacketKind::HandoverAck);
    match before {
        Some(before) if before.node == node && (to_the_one_before || packet.requester.node != node) => {
            before.slot
        }
        _ => packet.requester.slot,
    }
}

const fn place(endpoint: Endpoint) -> Place {
    match endpoint.node() {
        Some(node) => Place::Node(node),
        None => Place::Switch,
    }
}

impl<R: Rules> System for FlowCc<R> {
    type Message = SimMessage;

    fn envelope(&self, sim_message: &SimMessage) -> Envelope {
        let packet = sim_message.packet();
        let to = if matches!(sim_message, SimMessage::Again(_)) { Endpoint::Switch } else { packet.to };
        Envelope {
            from: place(packet.from),
            to: place(to),
            sender: self.processor(packet.from, packet),
            receiver: self.processor(to, packet),
            bytes: HEADER_BYTES as u32 + packet.payload,
            service: if packet.payload > INLINE { Service::Write } else { Service::Datagram },
        }
    }

    fn cost(&self, sim_message: &SimMessage) -> Nanos {
        self.config.costs.handling(sim_message.packet())
    }

    fn on_message(&mut self, call: &mut Call<'_, SimMessage>, sim_message: &SimMessage) {
        self.arrives(call, sim_message, |node, at, message, store, out| {
            node.on_packet(at, message, store, out)
        });
    }

    fn attempt(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        self.attempt_operation(call, thread, operation)
    }

    fn next_deadline(&self, node: NodeId) -> Nanos {
        if self.is_up(node) { self.nodes[node.index()].next_deadline() } else { Nanos::MAX }
    }

    fn on_deadline(&mut self, call: &mut Call<'_, SimMessage>, node: NodeId) {
        self.call_node(call, node, |node, at, store, out| node.on_deadline(at, store, out));
    }

    fn on_fault(&mut self, call: &mut Call<'_, SimMessage>, fault: Fault) {
        if let Some(new) = self.change(fault) {
            self.tell_all(call, &new);
        }
    }

    fn invariants(&mut self) {
        self.check_properties();
    }
}
