//! Locks that carry their data (GCS) on the simulated rack: the real agents, homes and switch directory, and what they
//! run on.
//!
//! It runs inside a [`Rack`](crate::rack::Rack). The machines are those of the live rack, called under the same
//! contract; here they get their processors, their packets' sizes and their costs.
//!
//! | file | holds |
//! | --- | --- |
//! | `config` | what can be set |
//! | `costs` | what takes how much processor time, with sources |
//! | `copies` | a node's copies with their gates, and what the machines see of them and of its memory |
//! | `operations` | what a thread's operation does |
//! | `properties` | what must hold for threads inside a lock |
//!
//! # Who runs what
//! As in the paper's cache controller: a thread that asks for a lock waits for the answer itself, and handles it. All else
//! is handled by one background thread of the node. Homes are memory blades: their NICs answer, and no processor (MIND's memory
//! blades serve one-sided requests); or that thread answers for them, too ([`SimLocksConfig::blades`]).
//!
//! Alone, regions are one length, in a row, and never given back. Beside coherence ([`joint`](crate::joint)) they are what the
//! allocator says.
//!
//! What must always hold: see [`node::locks`] and [`switch::locks`].

mod config;
mod copies;
mod costs;
mod operations;
mod properties;

use std::cell::RefCell;

use node::locks::{LockCounters, LockEffect, LockMessage, LockNode, Ticket};
use node::store::Moment;
use switch::locks::{Directory, Effect, Resubmit};
use wire::{
    AllRules, BlockSize, GlobalAddr, LockEnd, LockKind, LockPacket, Nanos, NodeId, Rules, SwitchEpoch,
};

use crate::home::{Contents, Home};
use crate::system::{Call, Envelope, Operation, Place, Processor, Progress, Service, System, ThreadId};
use copies::{Copies, Sent};
use operations::Waits;
use properties::Properties;

pub use config::SimLocksConfig;
pub(crate) use copies::StoreOf;
pub use costs::Costs;

/// Background threads that a node needs.
pub const AGENTS: usize = 1;

/// What travels.
#[derive(Clone, Copy, Debug)]
pub struct SimMessage {
    body: Body,
    sender: Processor,
    receiver: Processor,
}

#[derive(Clone, Copy, Debug)]
enum Body {
    /// A packet, with its region's data.
    Message(LockMessage),
    /// A packet between two passes through the switch.
    Again(Resubmit),
}

impl SimMessage {
    /// The packet.
    pub const fn packet(&self) -> &LockPacket {
        match &self.body {
            Body::Message(message) => &message.packet,
            Body::Again(again) => &again.packet,
        }
    }

    /// Whether it is between two passes through the switch.
    pub const fn is_between_passes(&self) -> bool {
        matches!(self.body, Body::Again(..))
    }
}

/// All machines of a rack.
pub struct Locks<R: Rules = AllRules> {
    rules: R,
    config: SimLocksConfig,
    nodes: Vec<LockNode<R>>,
    switch: Directory<R>,
    copies: Vec<Copies>,
    /// Every node's memory; beside coherence it is lent.
    pub(crate) homes: Vec<Home>,
    sent: RefCell<Sent>,
    waits: Waits,
    /// Regions of each home that are allocated, without an allocator.
    allocated: Vec<u64>,
    /// The number of the last write.
    writes: u64,
    /// Threads that entered by themselves.
    hits: u64,
    properties: Option<Properties>,
    pub(crate) effects: Vec<LockEffect>,
    from_switch: Vec<Effect>,
}

impl Locks {
    /// Machines in their initial state.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn new(config: SimLocksConfig) -> Self {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Locks<R> {
    /// Machines in their initial state, in which some rules of the protocol may not hold: for checkers.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn with_rules(rules: R, config: SimLocksConfig) -> Self {
        let of_switch = switch::locks::DirectoryConfig {
            at: LockEnd::Switch,
            nodes: config.nodes,
            entries: config.switch_entries,
            epoch: config.epoch,
        };
        let ids = (0..config.nodes).map(|index| NodeId(u16::try_from(index).expect("at most 64 nodes")));
        // Only numbers of regions, unless memory is lent.
        let home = |_| Home::new(BlockSize::DEFAULT, 0, Contents::Stamps);
        Self {
            rules,
            nodes: ids.clone().map(|id| LockNode::with_rules(rules, config.of_node(id))).collect(),
            switch: Directory::with_rules(rules, &of_switch).expect("the program fits the chip"),
            copies: ids.clone().map(|_| Copies::new(config.cache)).collect(),
            homes: ids.map(home).collect(),
            sent: RefCell::default(),
            waits: Waits::new(config.nodes, config.threads, config.costs.wake),
            allocated: vec![0; config.nodes],
            writes: 0,
            hits: 0,
            properties: config.check.then(Properties::default),
            effects: Vec::new(),
            from_switch: Vec::new(),
            config,
        }
    }

    // Getters

    /// How it was set up.
    pub const fn config(&self) -> &SimLocksConfig {
        &self.config
    }

    /// A node's machines.
    pub fn node(&self, node: NodeId) -> &LockNode<R> {
        &self.nodes[node.index()]
    }

    /// The directory in the switch.
    pub const fn switch(&self) -> &Directory<R> {
        &self.switch
    }

    /// Threads that entered without asking anybody.
    pub const fn hits(&self) -> u64 {
        self.hits
    }

    /// One count of all nodes.
    pub fn count(&self, of: impl Fn(&LockCounters) -> u64) -> u64 {
        self.nodes.iter().map(|node| of(node.counters())).sum()
    }

    // Calls

    /// Calls a node's machines in the name of this processor, and hands on what they want done.
    fn call_node<T>(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        by: (NodeId, Processor),
        input: impl FnOnce(&mut LockNode<R>, Moment, &mut StoreOf<'_>, &mut Vec<LockEffect>) -> T,
    ) -> T {
        #[allow(clippy::cast_possible_truncation, reason = "32 random bits")]
        let at = Moment { now: call.now, random: call.random.bits() as u32 };
        let mut out = core::mem::take(&mut self.effects);
        let (machine, mut store) = self.parts(by.0);
        let result = input(machine, at, &mut store, &mut out);
        self.effects = out;
        self.hand_on(call, by);
        result
    }

    /// A node's machine, and what it sees.
    pub(crate) fn parts(&mut self, node: NodeId) -> (&mut LockNode<R>, StoreOf<'_>) {
        let store = StoreOf {
            me: node,
            copies: &mut self.copies[node.index()],
            homes: &mut self.homes,
            sent: &self.sent,
            contents: self.config.contents,
            region: self.config.len,
        };
        (&mut self.nodes[node.index()], store)
    }

    /// The processor of a node that does what no thread waits for.
    pub(crate) const fn agent(&self, node: NodeId) -> Processor {
        Processor::Agent(node, self.config.agent)
    }

    /// Sends and tells what a node's machines want sent and told.
    pub(crate) fn hand_on(&mut self, call: &mut Call<'_, SimMessage>, (node, by): (NodeId, Processor)) {
        for index in 0..self.effects.len() {
            match self.effects[index] {
                LockEffect::Send(message) => {
                    if matches!(message.packet.kind, LockKind::Move | LockKind::Invalidated) {
                        call.charge(self.config.costs.unmap);
                    }
                    let receiver = self.receiver(message.packet.to, &message.packet);
                    call.send(SimMessage { body: Body::Message(message), sender: by, receiver });
                }
                LockEffect::Entered(Ticket(thread)) => {
                    let (thread, (lock, mode, reclaims)) = self.waits.entered(thread, by);
                    if let Some(properties) = &mut self.properties {
                        let seen = self.copies[node.index()].seen(lock);
                        properties.entered((thread, reclaims), (lock, mode), seen);
                    }
                    call.wake(thread);
                }
                LockEffect::Busy(Ticket(thread)) => {
                    call.wake(self.waits.failed(thread, wire::Refusal::Locked));
                }
                LockEffect::Failed(Ticket(thread), why) => call.wake(self.waits.failed(thread, why)),
                LockEffect::Freed(Ticket(thread)) => call.wake(self.waits.over(thread)),
            }
        }
        self.effects.clear();
    }

    /// A packet arrives, at a node for whoever handles it there.
    pub(crate) fn arrives(
        &mut self,
        call: &mut Call<'_, SimMessage>,
        sim_message: &SimMessage,
        on_packet: impl FnOnce(&mut LockNode<R>, Moment, &LockMessage, &mut StoreOf<'_>, &mut Vec<LockEffect>),
    ) {
        match (&sim_message.body, sim_message.packet().to.node()) {
            (Body::Message(message), Some(node)) => {
                let by = (node, sim_message.receiver);
                self.call_node(call, by, |node, at, store, out| on_packet(node, at, message, store, out));
            }
            _ => self.call_switch(call, sim_message),
        }
    }

    /// A new epoch begins: the switch is empty.
    pub(crate) fn begin_epoch(&mut self, epoch: SwitchEpoch) {
        self.config.epoch = epoch;
        self.switch.restart(epoch);
    }

    /// A node stops. Its machines begin a new incarnation, and hear nothing until they are told of an epoch.
    pub(crate) fn forget(&mut self, node: NodeId) {
        let config = node::locks::LockNodeConfig { epoch: SwitchEpoch(0), ..self.config.of_node(node) };
        self.nodes[node.index()] = LockNode::with_rules(self.rules, config);
        self.copies[node.index()] = Copies::new(self.config.cache);
        self.waits.forget(node);
        if let Some(properties) = &mut self.properties {
            properties.died(node, |thread| self.waits.node_of(thread) == node);
        }
    }

    /// These blocks belong to no allocation any more.
    pub(crate) fn given_back(&mut self, first: GlobalAddr, bytes: u64) {
        if let Some(properties) = &mut self.properties {
            properties.ended(first, bytes);
        }
    }

    fn call_switch(&mut self, call: &mut Call<'_, SimMessage>, sim_message: &SimMessage) {
        match &sim_message.body {
            Body::Message(message) => self.switch.on_packet(&message.packet, &mut self.from_switch),
            // What was between two passes went with the switch's state.
            Body::Again(again) if again.packet.epoch != self.config.epoch => {}
            Body::Again(again) => self.switch.on_resubmit(again, &mut self.from_switch),
        }
        for index in 0..self.from_switch.len() {
            let sender = Processor::Switch;
            match self.from_switch[index] {
                Effect::Send(packet) => {
                    let message = LockMessage { packet, data: None };
                    let receiver = self.receiver(packet.to, &packet);
                    call.send(SimMessage { body: Body::Message(message), sender, receiver });
                }
                Effect::Resubmit(again) => {
                    call.resubmit(SimMessage { body: Body::Again(again), sender, receiver: sender });
                }
            }
        }
        self.from_switch.clear();
    }

    /// Who handles a packet at its end.
    fn receiver(&self, end: LockEnd, packet: &LockPacket) -> Processor {
        match end {
            LockEnd::Switch => Processor::Switch,
            LockEnd::Home(node) if self.config.blades => Processor::Nic(node),
            LockEnd::Home(node) => self.agent(node),
            LockEnd::Agent(node) => {
                let answers = matches!(
                    packet.kind,
                    LockKind::Granted
                        | LockKind::Lent
                        | LockKind::Hand
                        | LockKind::Data
                        | LockKind::Busy
                        | LockKind::Refused
                );
                let waits = self.waits.first(node, packet.lock).filter(|_| answers);
                waits.map_or(self.agent(node), Processor::Thread)
            }
        }
    }

    /// The next region of a home, without asking anybody.
    pub fn allocate(&mut self, home: NodeId) -> Option<GlobalAddr> {
        let count = self.allocated.get_mut(home.index())?;
        *count += 1;
        Some(GlobalAddr::new(home, *count * u64::from(self.config.len.max(64)).next_power_of_two()))
    }
}

const fn place(end: LockEnd) -> Place {
    match end.node() {
        Some(node) => Place::Node(node),
        None => Place::Switch,
    }
}

impl<R: Rules> System for Locks<R> {
    type Message = SimMessage;

    fn envelope(&self, sim_message: &SimMessage) -> Envelope {
        let packet = sim_message.packet();
        let to = if matches!(sim_message.body, Body::Again(..)) { LockEnd::Switch } else { packet.to };
        // What a home passes on names whoever sent it first.
        let from = match sim_message.sender {
            Processor::Switch => Place::Switch,
            Processor::Thread(thread) => Place::Node(self.waits.node_of(thread)),
            Processor::Agent(node, _) | Processor::Nic(node) => Place::Node(node),
        };
        let head = u32::try_from(packet.head_bytes()).expect("a header is small");
        Envelope {
            from,
            to: place(to),
            sender: sim_message.sender,
            receiver: sim_message.receiver,
            bytes: head + packet.payload,
            service: if packet.payload > 0 { Service::Write } else { Service::Datagram },
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
        self.nodes[node.index()].next_deadline()
    }

    fn on_deadline(&mut self, call: &mut Call<'_, SimMessage>, node: NodeId) {
        let by = (node, self.agent(node));
        self.call_node(call, by, |node, at, store, out| node.on_deadline(at, store, out));
    }

    fn invariants(&mut self) {
        if self.config.check {
            self.nodes.iter().for_each(LockNode::invariants);
        }
    }
}
