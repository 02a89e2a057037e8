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
//! | `copies` | a node's copies with their gates, and the regions in its memory |
//! | `operations` | what a thread's operation does |
//! | `properties` | what must hold for threads inside a lock |
//!
//! # Who runs what
//! As in the paper's cache controller: a thread that asks for a lock waits for the answer itself, and handles it. All else
//! is handled by one background thread of the node, agent 0. Homes are memory blades: their NICs answer, and no processor
//! (MIND's memory blades serve one-sided requests).
//!
//! What must always hold: see [`node::locks`] and [`switch::locks`].

mod config;
mod copies;
mod costs;
mod operations;
mod properties;

use node::locks::{LockCounters, LockEffect, LockMessage, LockNode, Ticket};
use node::store::{DataRef, Moment};
use switch::locks::{Directory, Effect, Resubmit};
use wire::{Faithful, GlobalAddr, LockEnd, LockKind, LockPacket, LockRules, Nanos, NodeId, SwitchEpoch};

use crate::system::{Call, Envelope, Operation, Place, Processor, Progress, Service, System, ThreadId};
use copies::{Copies, Layout, StoreOf};
use operations::Waits;
use properties::Properties;

pub use config::Config;
pub use costs::Costs;

/// The background thread that handles what no thread waits for.
const AGENT: u8 = 0;
/// Background threads that a node needs.
pub const AGENTS: usize = 1;

/// What travels.
#[derive(Clone, Copy, Debug)]
pub struct Parcel {
    body: Body,
    sender: Processor,
    receiver: Processor,
}

#[derive(Clone, Copy, Debug)]
enum Body {
    /// A packet, with its region's data.
    Message(LockMessage),
    /// A packet between two passes through the switch, with them.
    Again(Resubmit, Option<DataRef>),
}

impl Parcel {
    /// The packet.
    pub const fn packet(&self) -> &LockPacket {
        match &self.body {
            Body::Message(message) => &message.packet,
            Body::Again(again, _) => &again.packet,
        }
    }
}

/// All machines of a rack.
pub struct Locks<R: LockRules = Faithful> {
    config: Config,
    nodes: Vec<LockNode<R>>,
    switch: Directory<R>,
    copies: Vec<Copies>,
    waits: Waits,
    /// Regions of each home that are allocated.
    allocated: Vec<u64>,
    /// The number of the last write.
    writes: u64,
    /// Threads that entered by themselves.
    hits: u64,
    properties: Option<Properties>,
    effects: Vec<LockEffect>,
    from_switch: Vec<Effect>,
}

impl Locks {
    /// Machines in their initial state.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn new(config: Config) -> Self {
        Self::with_rules(config)
    }
}

impl<R: LockRules> Locks<R> {
    /// Machines in their initial state, in which some rules of the protocol may not hold: for checkers.
    ///
    /// # Panics
    /// If the configuration is impossible.
    pub fn with_rules(config: Config) -> Self {
        let of_switch = switch::locks::Config {
            at: LockEnd::Switch,
            nodes: config.nodes,
            entries: config.switch_entries,
            epoch: SwitchEpoch(0),
        };
        let ids = (0..config.nodes).map(|index| NodeId(u16::try_from(index).expect("at most 64 nodes")));
        let layout = Layout::new(config.len, config.nodes);
        Self {
            nodes: ids.map(|id| LockNode::with_rules(config.of_node(id))).collect(),
            switch: Directory::with_rules(&of_switch).expect("the program fits the chip"),
            copies: (0..config.nodes).map(|_| Copies::new(layout, config.room())).collect(),
            waits: Waits::new(config.nodes, config.threads, config.costs.wake),
            allocated: vec![0; config.nodes],
            writes: 0,
            hits: 0,
            properties: config.check.then(|| Properties::new(config.len > 0)),
            effects: Vec::new(),
            from_switch: Vec::new(),
            config,
        }
    }

    // Getters

    /// How it was set up.
    pub const fn config(&self) -> &Config {
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
        call: &mut Call<'_, Parcel>,
        (node, by): (NodeId, Processor),
        input: impl FnOnce(&mut LockNode<R>, Moment, &mut StoreOf<'_>, &mut Vec<LockEffect>) -> T,
    ) -> T {
        #[allow(clippy::cast_possible_truncation, reason = "32 random bits")]
        let at = Moment { now: call.now, random: call.random.bits() as u32 };
        let mut store = StoreOf { copies: &mut self.copies[node.index()], region: self.config.len };
        let result = input(&mut self.nodes[node.index()], at, &mut store, &mut self.effects);
        for index in 0..self.effects.len() {
            match self.effects[index] {
                LockEffect::Send(message) => {
                    if matches!(message.packet.kind, LockKind::Move | LockKind::Invalidated) {
                        call.charge(self.config.costs.unmap);
                    }
                    let receiver = self.receiver(message.packet.to, &message.packet);
                    call.send(Parcel { body: Body::Message(message), sender: by, receiver });
                }
                LockEffect::Entered(Ticket(thread)) => {
                    let (thread, mode) = self.waits.entered(thread, by);
                    if let Some(properties) = &mut self.properties {
                        let (lock, mode) = mode;
                        properties.entered(lock, mode, self.copies[node.index()].stamp(lock));
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
        result
    }

    fn call_switch(&mut self, call: &mut Call<'_, Parcel>, parcel: &Parcel) {
        let data = match &parcel.body {
            Body::Message(message) => {
                self.switch.on_packet(&message.packet, &mut self.from_switch);
                message.data
            }
            Body::Again(again, data) => {
                self.switch.on_resubmit(again, &mut self.from_switch);
                *data
            }
        };
        for index in 0..self.from_switch.len() {
            let sender = Processor::Switch;
            match self.from_switch[index] {
                Effect::Send(packet) => {
                    let message = LockMessage { packet, data: data.filter(|_| packet.payload > 0) };
                    let receiver = self.receiver(packet.to, &packet);
                    call.send(Parcel { body: Body::Message(message), sender, receiver });
                }
                Effect::Resubmit(again) => {
                    call.resubmit(Parcel { body: Body::Again(again, data), sender, receiver: sender });
                }
            }
        }
        self.from_switch.clear();
    }

    /// Who handles a packet at its end.
    fn receiver(&self, end: LockEnd, packet: &LockPacket) -> Processor {
        match end {
            LockEnd::Switch => Processor::Switch,
            LockEnd::Home(node) => Processor::Nic(node),
            LockEnd::Agent(node) => {
                let answers = matches!(
                    packet.kind,
                    LockKind::Granted | LockKind::Lent | LockKind::Hand | LockKind::Busy | LockKind::Refused
                );
                let waits = self.waits.first(node, packet.lock).filter(|_| answers);
                waits.map_or(Processor::Agent(node, AGENT), Processor::Thread)
            }
        }
    }

    /// The next region of a home, without asking anybody.
    pub fn allocate(&mut self, home: NodeId) -> Option<GlobalAddr> {
        let count = self.allocated.get_mut(home.index())?;
        *count += 1;
        Some(self.copies[0].layout().addr(home, *count))
    }
}

const fn place(end: LockEnd) -> Place {
    match end.node() {
        Some(node) => Place::Node(node),
        None => Place::Switch,
    }
}

impl<R: LockRules> System for Locks<R> {
    type Message = Parcel;

    fn envelope(&self, parcel: &Parcel) -> Envelope {
        let packet = parcel.packet();
        let to = if matches!(parcel.body, Body::Again(..)) { LockEnd::Switch } else { packet.to };
        // What a home passes on names whoever sent it first.
        let from = match parcel.sender {
            Processor::Switch => Place::Switch,
            Processor::Thread(thread) => Place::Node(self.waits.node_of(thread)),
            Processor::Agent(node, _) | Processor::Nic(node) => Place::Node(node),
        };
        let head = u32::try_from(packet.head_bytes()).expect("a header is small");
        Envelope {
            from,
            to: place(to),
            sender: parcel.sender,
            receiver: parcel.receiver,
            bytes: head + packet.payload,
            service: if packet.payload > 0 { Service::Write } else { Service::Datagram },
        }
    }

    fn cost(&self, parcel: &Parcel) -> Nanos {
        self.config.costs.handling(parcel.packet())
    }

    fn on_message(&mut self, call: &mut Call<'_, Parcel>, parcel: &Parcel) {
        match (&parcel.body, parcel.packet().to.node()) {
            (Body::Message(message), Some(node)) => {
                let by = (node, parcel.receiver);
                self.call_node(call, by, |node, at, store, out| node.on_packet(at, message, store, out));
            }
            _ => self.call_switch(call, parcel),
        }
    }

    fn attempt(
        &mut self,
        call: &mut Call<'_, Parcel>,
        thread: ThreadId,
        operation: &mut Operation<'_>,
    ) -> Progress {
        self.attempt_operation(call, thread, operation)
    }

    fn next_deadline(&self, node: NodeId) -> Nanos {
        self.nodes[node.index()].next_deadline()
    }

    fn on_deadline(&mut self, call: &mut Call<'_, Parcel>, node: NodeId) {
        let by = (node, Processor::Agent(node, AGENT));
        self.call_node(call, by, |node, at, store, out| node.on_deadline(at, store, out));
    }

    fn invariants(&mut self) {
        if self.config.check {
            self.nodes.iter().for_each(LockNode::invariants);
        }
    }
}
