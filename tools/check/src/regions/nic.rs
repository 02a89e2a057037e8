//! A node's NIC: the real device and its connections; packets, works and kept answers with their bytes, by value.
//!
//! As live racks drive it. What must always hold: each effect is done before the next call; a piece of work ends once.

use std::collections::{BTreeMap, VecDeque};

use nic::connections::{Again, Change, Connections, Ended};
use nic::regions::Exported;
use nic::verbs::{
    Access, Completion, CqNumber, Depth, Device, Effect, Mtu, Operation, PostError, Receive, Region, Remote,
    Slot, Span, ToReceive, ToSend, WorkId, WorkRequest,
};
use switch::relay::Introduction;
use wire::chain_pair::ChainPair;
use wire::roce::{Key, Packet, Psn, QpNumber};
use wire::{Incarnation, Nanos, NodeId, Rules};

use super::RegionsPlan;
use super::chained::{self, Chained, Posted};
use super::memory::{During, Named};
use crate::coherence::PlainStore;

/// Receives that are posted to each connection: so few that some messages meet none.
const RECEIVES: usize = 3;
/// Work that is posted to a connection at a time.
const SENDS: usize = 8;
/// Batches and reads in flight on a connection.
const OUTSTANDING: u32 = 4;
/// Until a packet is sent again.
const TIMEOUT: Nanos = Nanos::from_micros(100);
/// Words of the longest payload: a call that writes an object.
const WORDS: usize = 9;
const LONGEST: u32 = WORDS as u32 * 8;

/// The bytes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Payload {
    words: [u64; WORDS],
    len: u32,
}

impl Payload {
    pub(crate) fn of(words: &[u64]) -> Self {
        Self::of_bytes(words, words.len() * 8)
    }

    pub(crate) fn of_bytes(words: &[u64], len: usize) -> Self {
        let mut payload = Self { words: [0; WORDS], len: len as u32 };
        payload.words[..words.len()].copy_from_slice(words);
        payload
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words[..self.len.div_ceil(8) as usize]
    }

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    fn part(&self, offset: u64, len: u32) -> Self {
        let at = (offset / 8) as usize;
        Self::of_bytes(&self.words[at..at + len.div_ceil(8) as usize], len as usize)
    }

    fn addr_of(&mut self, offset: u64, from: &Self) {
        let at = (offset / 8) as usize;
        self.words[at..at + from.words().len()].copy_from_slice(from.words());
    }
}

/// What is on the network.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Which node has sent it.
    pub from: NodeId,
    /// What it is.
    pub body: Body,
}

/// What one NIC sends another.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// A packet of a queue pair.
    Packet(Packet, Payload),
    /// About a connection that broke.
    Again(Again),
    /// A packet of a queue pair of chains, and when it was sent: it passes the switch.
    Chain(Packet, Payload, Nanos),
    /// What the switch is told about chains, or says.
    Said(Introduction),
}

/// What a piece of work does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// A call, or a reply to one.
    Send,
    /// A batch with an answer of so many bytes.
    Atomics { answer: u32 },
    /// Reads an object.
    ReadObject { remote: Remote, len: u32 },
    /// Of chains: one of their verbs.
    Verb(Posted),
}

/// A piece of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) peer: NodeId,
    pub(super) what: What,
    /// Who wants to know how it ends.
    pub(super) thread: Option<usize>,
    pub(super) source: Payload,
    pub(super) landing: Payload,
    /// The queue pair, if it is one of chains.
    pub(super) chain: Option<QpNumber>,
}

/// What has become of something at a node's NIC.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// Work has ended; without a completion if its connection ended first.
    Done(Work, Option<Completion>),
    /// A message has come from a node.
    Came(NodeId, Payload),
    /// The connection to this node has ended: nothing that it asked for is to be served.
    Ended(NodeId),
    /// A verb of chains has ended, for whoever has this ticket.
    Verb(u64, chained::Outcome),
}

/// A node's NIC.
pub(super) struct Nic<R: Rules> {
    pub(super) me: NodeId,
    pub(super) device: Device<R>,
    pub(super) connections: Connections<R>,
    /// Those of clients of chains, and of memory to them.
    pub(super) chains: Chained,
    completions: CqNumber,
    retries: u32,
    waiting: Vec<VecDeque<u64>>,
    pub(super) works: BTreeMap<u64, Work>,
    pub(super) next: u64,
    source: Key,
    landing: Key,
    receiving: Key,
    receives: Vec<Payload>,
    pub(super) kept: BTreeMap<Slot, Payload>,
    /// The numbers of regions, by key.
    pub(super) exported: Exported<u64>,
    pub(super) effects: Vec<Effect>,
    changes: Vec<Change>,
    /// What is to be sent.
    pub(super) out: Vec<(NodeId, Body)>,
    pub(super) events: Vec<Event>,
    /// Connections that broke.
    pub(super) broken: u64,
}

const fn address_of(work: u64) -> u64 {
    work << 16
}

impl<R: Rules> Nic<R> {
    pub(super) fn new(rules: R, me: NodeId, nodes: usize, plan: &RegionsPlan) -> Self {
        let mut device = Device::with_rules(rules, 1 << 20);
        let mut names = |access| {
            device.register(Region { base: 0, len: 1 << 62, access }).expect("the first regions of a device")
        };
        let (source, landing) = (names(Access::LOCAL_READ), names(Access::LOCAL_WRITE));
        let receiving = names(Access::LOCAL_WRITE);
        let completions = device.create_completion_queue(nodes * (SENDS + RECEIVES));
        let depth = Depth { sends: SENDS, receives: RECEIVES };
        let queue_pairs = (0..nodes).map(|_| device.create_queue_pair(completions, completions, depth));
        let connections = Connections::with_rules(rules, me, queue_pairs);
        Self {
            me,
            device,
            connections,
            chains: Chained::default(),
            completions,
            retries: plan.retries as u32,
            waiting: vec![VecDeque::new(); nodes],
            works: BTreeMap::new(),
            next: 0,
            source,
            landing,
            receiving,
            receives: vec![Payload::default(); nodes * RECEIVES],
            kept: BTreeMap::new(),
            exported: Exported::new(plan.kept),
            effects: Vec::new(),
            changes: Vec::new(),
            out: Vec::new(),
            events: Vec::new(),
            broken: 0,
        }
    }

    /// The incarnation of another node, as far as this one is connected to it.
    pub(crate) fn incarnation_of(&self, peer: NodeId) -> Option<Incarnation> {
        self.connections.incarnations(peer).map(|incarnations| incarnations.theirs)
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        self.device.next_deadline().min(self.connections.next_deadline())
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.works.is_empty() && self.connections.is_quiet()
    }

    /// What is in flight.
    pub(super) fn works(&self) -> impl Iterator<Item = (&u64, &Work)> {
        self.works.iter()
    }

    pub(super) fn on_packet(
        &mut self,
        now: Nanos,
        message: &Message,
        memory: &mut During<'_>,
        store: &mut PlainStore,
    ) {
        match message.body {
            Body::Again(said) => self.change(now, |it, out| it.on_again(now, message.from, &said, out)),
            Body::Packet(packet, payload) => {
                self.handle(now, message.from, (&packet, &payload), (memory, store));
            }
            Body::Chain(packet, payload, _) => {
                // The switch has looked that it is from there. One that is not for this node finds no queue pair.
                if let Some(pair) = ChainPair::of(packet.to) {
                    self.chains.touch(packet.to);
                    self.handle(now, pair.peer, (&packet, &payload), (memory, store));
                }
            }
            Body::Said(_) => unreachable!("that is not for the NIC"),
        }
    }

    fn handle(
        &mut self,
        now: Nanos,
        from: NodeId,
        (packet, payload): (&Packet, &Payload),
        (memory, store): (&mut During<'_>, &mut PlainStore),
    ) {
        let mut effects = std::mem::take(&mut self.effects);
        let Self { device, kept, exported, .. } = self;
        let mut during = memory.with((kept, exported), store, payload);
        device.on_packet(now, from, packet, payload.len, &mut during, &mut effects);
        self.effects = effects;
        self.apply(now, payload, Some(Named { truth: memory.truth, store }));
        self.settle(now);
    }

    pub(super) fn on_deadline(&mut self, now: Nanos) {
        self.change(now, |connections, out| connections.on_deadline(now, out));
        self.device.on_deadline(now, &mut self.effects);
        self.settle(now);
    }

    pub(super) fn on_view(&mut self, now: Nanos, incarnations: &[Option<Incarnation>]) {
        self.change(now, |connections, out| connections.on_view(incarnations, out));
    }

    /// Posts work, or has it wait for its turn. False: the other node is down.
    pub(super) fn post(&mut self, now: Nanos, work: Work) -> Option<u64> {
        self.connections.incarnations(work.peer)?;
        let number = self.next;
        self.next += 1;
        self.works.insert(number, work);
        self.waiting[work.peer.index()].push_back(number);
        self.pump(now, work.peer);
        self.settle(now);
        Some(number)
    }

    /// What a piece of work is for the device.
    pub(super) fn request(&self, number: u64) -> WorkRequest {
        let Work { what, source, .. } = &self.works[&number];
        let address = address_of(number);
        let local = Span { key: self.source, address, len: source.len };
        let landing = |len| Span { key: self.landing, address, len };
        let operation = match *what {
            What::Send => Operation::Send { local, immediate: None },
            What::Atomics { answer } => Operation::Atomics { request: local, answer: landing(answer) },
            What::ReadObject { remote, len } => Operation::ReadObject { local: landing(len), remote },
            What::Verb(Posted::Read { remote, len }) => Operation::Read { local: landing(len), remote },
            What::Verb(Posted::Write { remote }) => Operation::Write { local, remote, immediate: None },
            What::Verb(Posted::CompareSwap { remote, compare, swap }) => {
                Operation::CompareSwap { remote, compare, swap, result: None }
            }
        };
        WorkRequest::new(WorkId(number), operation)
    }

    fn pump(&mut self, now: Nanos, peer: NodeId) {
        let queue_pair = self.connections.queue_pair(peer);
        while let Some(&number) = self.waiting[peer.index()].front() {
            let request = self.request(number);
            match self.device.post_send(now, queue_pair, request, &mut self.effects) {
                Ok(()) => {
                    self.waiting[peer.index()].pop_front();
                }
                Err(PostError::QueueFull | PostError::CompletionQueueFull | PostError::NotReady) => break,
                Err(why) => panic!("{request:?}: {why}"),
            }
        }
    }

    /// Does the effects, and what follows from completions, until nothing is left; then what broke begins anew.
    pub(super) fn settle(&mut self, now: Nanos) {
        self.apply(now, &Payload::default(), None);
        while let Some(completion) = self.device.poll(self.completions).or_else(|| self.poll_chains()) {
            self.complete(now, &completion);
            self.apply(now, &Payload::default(), None);
        }
        self.change(now, |connections, out| connections.mend(now, out));
    }

    /// Does the effects; of a packet, with the memory that it may name.
    fn apply(&mut self, now: Nanos, payload: &Payload, mut memory: Option<Named<'_>>) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send { from, to, packet, payload } => {
                    let payload = match payload {
                        None => Payload::default(),
                        Some(nic::verbs::Payload::Kept { slot, offset, len }) => {
                            self.kept[&slot].part(offset.into(), len)
                        }
                        Some(nic::verbs::Payload::Region(Span { key, address, len })) => {
                            if key == self.source {
                                self.works[&(address >> 16)].source.part(address & 0xffff, len)
                            } else {
                                let number = self.exported.get(key).expect("the device knows its key");
                                memory.as_ref().expect("it was asked for").read(*number, address, len)
                            }
                        }
                    };
                    self.out.push((
                        to,
                        match ChainPair::of(from) {
                            Some(_) => Body::Chain(packet, payload, now),
                            None => Body::Packet(packet, payload),
                        },
                    ));
                }
                Effect::Place { at: Span { key, address, len } } => {
                    assert_eq!(len, payload.len, "all of a payload is placed");
                    let (number, offset) = (address >> 16, address & 0xffff);
                    if key == self.landing {
                        let work = self.works.get_mut(&number).expect("it is in flight");
                        work.landing.addr_of(offset, payload);
                    } else if key == self.receiving {
                        self.receives[number as usize].addr_of(offset, payload);
                    } else {
                        let number = self.exported.get(key).expect("the device knows its key");
                        memory.as_mut().expect("it has come").write(*number, address, payload);
                    }
                }
                Effect::Store { .. } | Effect::Notify { .. } => unreachable!("{effect:?}"),
                Effect::Broken { queue_pair } if ChainPair::of(queue_pair).is_some() => {
                    self.chains.break_off(queue_pair);
                }
                Effect::Broken { queue_pair } => {
                    self.broken += 1;
                    self.connections.on_broken(queue_pair);
                }
            }
        }
    }

    fn complete(&mut self, now: Nanos, completion: &Completion) {
        if ChainPair::of(completion.queue_pair).is_some() {
            return self.complete_chain(now, completion);
        }
        let peer = self.connections.peer(completion.queue_pair).expect("one of ours");
        if completion.receive {
            if completion.status == nic::verbs::Status::Success {
                let at = completion.id.0 as usize;
                let came = self.receives[at].part(0, completion.len);
                self.post_receive(now, peer, at);
                self.events.push(Event::Came(peer, came));
            }
            return;
        }
        if let Some(work) = self.works.remove(&completion.id.0) {
            self.events.push(Event::Done(work, Some(*completion)));
        }
        self.pump(now, peer);
    }

    fn post_receive(&mut self, now: Nanos, peer: NodeId, at: usize) {
        let local = Span { key: self.receiving, address: address_of(at as u64), len: LONGEST };
        let receive = Receive { id: WorkId(at as u64), local };
        let queue_pair = self.connections.queue_pair(peer);
        let posted = self.device.post_receive(now, queue_pair, receive, &mut self.effects);
        debug_assert!(posted.is_ok(), "{posted:?}");
    }

    fn change(&mut self, now: Nanos, action: impl FnOnce(&mut Connections<R>, &mut Vec<Change>)) {
        let mut changes = std::mem::take(&mut self.changes);
        action(&mut self.connections, &mut changes);
        for change in changes.drain(..) {
            match change {
                Change::Ended(peer, Ended::Broken) => self.disconnect(peer),
                Change::Ended(peer, Ended::Down(incarnation)) => {
                    self.disconnect(peer);
                    if let Some(incarnation) = incarnation {
                        self.end_chains_of(peer, incarnation);
                    }
                }
                Change::Begun(peer) => self.connect(now, peer),
                Change::Say(peer, said) => self.out.push((peer, Body::Again(said))),
            }
        }
        self.changes = changes;
    }

    fn disconnect(&mut self, peer: NodeId) {
        self.waiting[peer.index()].clear();
        let number = self.connections.queue_pair(peer);
        self.device.reset(number).expect("it is there");
        self.kept.retain(|slot, _| slot.queue_pair != number);
        let failed = self.works.extract_if(.., |_, work| work.peer == peer && work.chain.is_none());
        self.events.extend(failed.map(|(_, work)| Event::Done(work, None)));
        self.events.push(Event::Ended(peer));
    }

    fn connect(&mut self, now: Nanos, peer: NodeId) {
        let (there, any) = (self.connections.queue_pair(peer), Psn::new(0));
        let receive = ToReceive {
            remembered: OUTSTANDING,
            longest: LONGEST,
            ..ToReceive::new(peer, there, Mtu::B256, any)
        };
        let send =
            ToSend { timeout: TIMEOUT, retries: self.retries, outstanding: OUTSTANDING, ..ToSend::new(any) };
        self.connections.connect(&mut self.device, peer, receive, send);
        for receive in 0..RECEIVES {
            self.post_receive(now, peer, peer.index() * RECEIVES + receive);
        }
    }
}
