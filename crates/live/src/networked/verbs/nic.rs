//! A node's device with what its effects need: connections, works, bytes.
//!
//! Under one lock, which is no actor's. What must always hold: each effect is done before the next call; a piece of work ends
//! once, whatever happens to its connection.

use std::collections::VecDeque;
use std::sync::Arc;

use nic::connections::{Again, Change, Connections, Ended as Over};
use nic::regions::{CALL_BYTES, Message};
use nic::verbs::{
    Access, Completion, CqNumber, Depth, Device, Effect, Mtu, PostError, Receive, Region as Registered,
    Status, ToReceive, ToSend, WorkId,
};
use sorted::{Map, Set};
use transport::{Body, Contents, Outgoing, PeerId, Transport};
use wire::chain_pair::ChainPair;
use wire::roce::{Packet, Psn};
use wire::{Incarnation, Nanos, NodeId, Refusal, SwitchEpoch};
use zerocopy::IntoBytes as _;

use super::chained::Chained;
use super::memory::{Bytes, During};
use super::ticket::{Ended, Ticket};
use super::works::{Keys, What, Work, Works, address_of};
use crate::actor::Failure;

/// Regions that a node can have, ended ones included that still have their keys.
const REGIONS: u32 = 1 << 20;
/// Work that is posted to a connection at a time; what is more waits.
const SENDS: usize = 64;
/// Receives that are posted to each.
const RECEIVES: usize = 32;
/// The longest message: a whole object is written by one.
const LONGEST: u32 = (1 << 20) + CALL_BYTES as u32;
/// Batches, READs and object reads in flight on a connection.
const OUTSTANDING: u32 = 32;
/// Names that are not addresses of any memory: works and receives lie there.
const NAMES: u64 = 1 << 62;

/// How packets leave.
pub(crate) struct Way<'a> {
    pub(crate) transport: &'a dyn Transport,
    pub(crate) outgoing: &'a mut Outgoing,
    /// Nothing leaves.
    pub(crate) is_fenced: bool,
}

pub(crate) struct Nic {
    pub(super) me: NodeId,
    pub(super) mtu: Mtu,
    pub(super) device: Device,
    completions: CqNumber,
    pub(super) connections: Connections,
    /// By node: work that waits to be posted on the connection to it.
    waiting: Vec<VecDeque<usize>>,
    changes: Vec<Change>,
    /// Those of clients of chains, and of memory to them.
    pub(super) chains: Chained,
    pub(super) works: Works,
    pub(super) bytes: Bytes,
    /// Calls without a reply yet, by number, and whom they asked.
    calls: Map<u64, (NodeId, Arc<Ticket>)>,
    next_call: u64,
    /// What others have asked, to be served when no lock is held: numbers, and the words behind them.
    pub(super) asked: VecDeque<(NodeId, Vec<u64>)>,
    pub(super) effects: Vec<Effect>,
    scratch: Vec<u64>,
    /// Shortest time until a packet is sent again.
    pub(super) timeout: Nanos,
    /// How often that is, until a peer that is silent is given up.
    retries: u32,
    pub(super) malformed: u64,
    /// The epoch as of which connections are.
    pub(super) known: SwitchEpoch,
    /// Nodes whose connected incarnation is over, for whoever has to do more about that.
    pub(super) gone: Vec<NodeId>,
    /// Nodes that are dead, but may still have a process that writes into this node's memory.
    pub(super) suspects: Set<NodeId>,
}

impl Nic {
    /// Sends again what is not answered within `timeout`, until the peer has been silent for so long.
    pub(crate) fn new(me: NodeId, nodes: usize, mtu: Mtu, (timeout, silence): (Nanos, Nanos)) -> Self {
        let mut device = Device::new(REGIONS);
        let mut names = |access| {
            device
                .register(Registered { base: 0, len: NAMES, access })
                .expect("the first regions of a device")
        };
        let keys = Keys { source: names(Access::LOCAL_READ), landing: names(Access::LOCAL_WRITE) };
        let receiving = names(Access::LOCAL_WRITE);
        let completions = device.create_completion_queue(nodes * (SENDS + RECEIVES));
        let depth = Depth { sends: SENDS, receives: RECEIVES };
        // One for each node, so that everybody knows the numbers of the others; that for this node is never connected.
        let queue_pairs = (0..nodes).map(|_| device.create_queue_pair(completions, completions, depth));
        let connections = Connections::new(me, queue_pairs);
        let mut bytes = Bytes::new(keys, receiving);
        bytes.receives.resize_with(nodes * RECEIVES, Vec::new);
        Self {
            me,
            mtu,
            device,
            completions,
            connections,
            waiting: vec![VecDeque::new(); nodes],
            changes: Vec::new(),
            chains: Chained::default(),
            works: Works::default(),
            bytes,
            calls: Map::new(),
            next_call: 1,
            asked: VecDeque::new(),
            effects: Vec::new(),
            scratch: Vec::new(),
            timeout,
            retries: u32::try_from(silence.0 / timeout.0).unwrap_or(u32::MAX),
            malformed: 0,
            known: SwitchEpoch(0),
            gone: Vec::new(),
            suspects: Set::new(),
        }
    }

    /// What has become of connections is done: what was in flight has failed, others begin, something is said.
    pub(super) fn change(
        &mut self,
        now: Nanos,
        way: &mut Way<'_>,
        action: impl FnOnce(&mut Connections, &mut Vec<Change>),
    ) {
        let mut changes = std::mem::take(&mut self.changes);
        action(&mut self.connections, &mut changes);
        for change in changes.drain(..) {
            match change {
                Change::Ended(peer, Over::Broken) => self.disconnect(peer, Failure::Broken),
                Change::Ended(peer, Over::Down(incarnation)) => {
                    self.disconnect(peer, Failure::Refused(Refusal::NodeDown));
                    if let Some(incarnation) = incarnation {
                        self.end_chains_of(peer, incarnation);
                        self.gone.push(peer);
                    }
                }
                Change::Begun(peer) => self.connect(now, peer, way),
                Change::Say(peer, said) => {
                    if !way.is_fenced {
                        let body = said.encode();
                        way.transport.send(PeerId::node(peer), Body::Control(&body), way.outgoing);
                    }
                }
            }
        }
        self.changes = changes;
    }

    /// An epoch begins, in which these lives of nodes are in the rack. One that comes late, after a later one, says nothing.
    pub(super) fn begin_epoch(
        &mut self,
        now: Nanos,
        (epoch, lives): (SwitchEpoch, &[Option<Incarnation>]),
        way: &mut Way<'_>,
    ) {
        if epoch >= self.known {
            self.change(now, way, |connections, out| connections.on_view(lives, out));
            self.known = epoch;
        }
    }

    /// True if that life of another node is over: lives are called by the epochs that they begin with.
    pub(super) fn is_over(&self, node: NodeId, life: Incarnation) -> bool {
        life.0 <= self.known.0 && self.connections.incarnations(node).is_none_or(|it| it.theirs != life)
    }

    /// Connections that have broken begin anew.
    pub(super) fn mend_broken(&mut self, now: Nanos, way: &mut Way<'_>) {
        self.change(now, way, |connections, out| connections.mend(now, out));
    }

    /// What another node says of the connection to it.
    pub(super) fn on_again(&mut self, now: Nanos, from: NodeId, said: &Again, way: &mut Way<'_>) {
        self.change(now, way, |connections, out| connections.on_again(now, from, said, out));
    }

    /// Begins a connection anew, after everything that was in flight on it has failed.
    fn connect(&mut self, now: Nanos, peer: NodeId, way: &mut Way<'_>) {
        let any = (peer, self.connections.queue_pair(peer), Psn::new(0));
        let receive = ToReceive {
            remembered: OUTSTANDING,
            longest: LONGEST,
            ..ToReceive::new(any.0, any.1, self.mtu, any.2)
        };
        let send = ToSend {
            timeout: self.timeout,
            retries: self.retries,
            outstanding: OUTSTANDING,
            ..ToSend::new(any.2)
        };
        self.connections.connect(&mut self.device, peer, receive, send);
        for receive in 0..RECEIVES {
            self.post_receive(now, peer, peer.index() * RECEIVES + receive);
        }
        self.settle(now, Contents::None, way);
    }

    /// Ends a connection: what was in flight on it has failed.
    fn disconnect(&mut self, peer: NodeId, why: Failure) {
        self.waiting[peer.index()].clear();
        let number = self.connections.queue_pair(peer);
        self.device.reset(number).expect("it is there");
        self.bytes.forget_kept(number);
        // What had come of the others' ends is completed no more: a reset forgets it. What was completed is polled after each call.
        for work in self.works.drain(peer) {
            if let Some(ticket) = work.ticket {
                ticket.end(Ended::Failed(why));
            }
        }
        self.calls.retain(|_, (asked, ticket)| {
            let is_over = *asked == peer;
            if is_over {
                ticket.end(Ended::Failed(why));
            }
            !is_over
        });
        self.asked.retain(|(from, _)| *from != peer);
    }

    /// This node counts no more: whatever it has in flight has failed.
    pub(super) fn end_all(&mut self, now: Nanos, why: Failure, way: &mut Way<'_>) {
        for index in 0..self.waiting.len() {
            self.disconnect(NodeId(index as u16), why);
        }
        self.end_chains(why);
        self.change(now, way, |connections, out| connections.end_all(out));
    }

    fn post_receive(&mut self, now: Nanos, peer: NodeId, at: usize) {
        self.bytes.receives[at].clear();
        let span = nic::verbs::Span { key: self.bytes.receiving, address: address_of(at, 0), len: LONGEST };
        let receive = Receive { id: WorkId(at as u64), local: span };
        let number = self.connections.queue_pair(peer);
        let posted = self.device.post_receive(now, number, receive, &mut self.effects);
        // In the error state it is flushed, and comes back as a completion.
        debug_assert!(posted.is_ok(), "{posted:?}");
    }

    /// Posts work, or has it wait for its turn.
    pub(crate) fn post(&mut self, now: Nanos, work: Work, way: &mut Way<'_>) {
        let peer = work.peer;
        if !self.reaches(peer, work.incarnation) {
            if let Some(ticket) = work.ticket {
                ticket.end(Ended::Failed(Failure::Refused(Refusal::NodeDown)));
            }
            return;
        }
        let at = self.works.add(work);
        self.waiting[peer.index()].push_back(at);
        self.pump(now, peer);
        self.settle(now, Contents::None, way);
    }

    /// True if the other node can be asked; only in this incarnation, if one is given.
    pub(super) fn reaches(&self, peer: NodeId, incarnation: Option<Incarnation>) -> bool {
        match incarnation {
            Some(incarnation) => self.connections.reaches(peer, incarnation),
            None => self.connections.incarnations(peer).is_some(),
        }
    }

    /// The number of a call that this node is to be asked.
    pub(super) fn number_call(&mut self, home: NodeId, ticket: &Arc<Ticket>) -> u64 {
        let number = self.next_call;
        self.next_call += 1;
        self.calls.insert(number, (home, Arc::clone(ticket)));
        number
    }

    /// Posts what waits, as far as there is capacity.
    fn pump(&mut self, now: Nanos, peer: NodeId) {
        let (queue_pair, waiting) = (self.connections.queue_pair(peer), &mut self.waiting[peer.index()]);
        while let Some(&at) = waiting.front() {
            let request = self.works.request(at, self.bytes.keys);
            match self.device.post_send(now, queue_pair, request, &mut self.effects) {
                Ok(()) => {
                    waiting.pop_front();
                }
                Err(PostError::QueueFull | PostError::CompletionQueueFull) => break,
                // Broken, and about to be begun anew.
                Err(PostError::NotReady) => break,
                Err(why) => panic!("{request:?}: {why}"),
            }
        }
    }

    /// A packet has come.
    pub(super) fn on_packet(
        &mut self,
        now: Nanos,
        from: NodeId,
        packet: &Packet,
        len: usize,
        contents: Contents<'_>,
        way: &mut Way<'_>,
    ) {
        let Self { device, bytes, effects, scratch, .. } = self;
        // Only a batch is looked at in the middle of the call.
        let payload: &[u8] = if packet.opcode == wire::roce::Opcode::RaeRequest {
            scratch.clear();
            scratch.resize(len.div_ceil(8), 0);
            let payload = &mut scratch.as_mut_bytes()[..len];
            contents.copy_to(0, payload);
            payload
        } else {
            &[]
        };
        let mut memory = During { bytes, payload };
        device.on_packet(now, from, packet, len as u32, &mut memory, effects);
        self.settle(now, contents, way);
    }

    /// When something is to be done.
    pub(crate) fn next_deadline(&self) -> Nanos {
        self.device.next_deadline().min(self.connections.next_deadline())
    }

    pub(crate) fn on_deadline(&mut self, now: Nanos, way: &mut Way<'_>) {
        self.change(now, way, |connections, out| connections.on_deadline(now, out));
        if self.device.next_deadline() <= now {
            self.device.on_deadline(now, &mut self.effects);
            self.settle(now, Contents::None, way);
        }
    }

    /// Does the effects, and what follows from completions, until nothing is left.
    pub(super) fn settle(&mut self, now: Nanos, contents: Contents<'_>, way: &mut Way<'_>) {
        self.apply(contents, way);
        while let Some(completion) = self.device.poll(self.completions).or_else(|| self.poll_chains()) {
            self.complete(now, &completion);
            self.apply(Contents::None, way);
        }
    }

    fn apply(&mut self, contents: Contents<'_>, way: &mut Way<'_>) {
        let Self { effects, bytes, works, scratch, connections, chains, .. } = self;
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { from, to, packet, payload } => {
                    if way.is_fenced {
                        continue;
                    }
                    let (len, contents) = match payload {
                        None => (0, Contents::None),
                        Some(payload) => (payload.bytes() as usize, bytes.to_send(works, payload, scratch)),
                    };
                    // What is about chains goes through the switch's process, which may steer it.
                    let is_chain = ChainPair::of(from).is_some();
                    let to = if is_chain { PeerId::SWITCH } else { PeerId::node(to) };
                    way.transport.send(to, Body::Verbs(&packet, len, contents), way.outgoing);
                }
                Effect::Place { at } => bytes.place(works, at, contents),
                Effect::Store { .. } | Effect::Notify { .. } => {
                    unreachable!("nobody asked for that: {effect:?}")
                }
                Effect::Broken { queue_pair } if ChainPair::of(queue_pair).is_some() => {
                    chains.break_off(queue_pair);
                }
                Effect::Broken { queue_pair } => connections.on_broken(queue_pair),
            }
        }
    }

    fn complete(&mut self, now: Nanos, completion: &Completion) {
        let number = completion.queue_pair;
        if ChainPair::of(number).is_some() {
            return self.complete_chain(now, completion);
        }
        let peer = self.connections.peer(number).expect("one of ours");
        let at = completion.id.0 as usize;
        if completion.receive {
            if completion.status != Status::Success {
                // Flushed: posted again when the connection begins anew.
                return;
            }
            let mut words = std::mem::take(&mut self.bytes.receives[at]);
            words.truncate((completion.len as usize).div_ceil(8));
            self.post_receive(now, peer, at);
            self.on_message(peer, words);
            return;
        }
        let Some(work) = self.works.take(at) else { return };
        if let Some(ticket) = work.ticket {
            ticket.end(match (completion.status, work.what) {
                (Status::Success, What::ReadObject { .. }) => {
                    let version = completion.version.expect("the version of what was read");
                    Ended::Object(version, work.landing)
                }
                (Status::Success, _) => Ended::Answer(work.landing),
                (Status::Torn, _) => Ended::Torn,
                (Status::Gone, _) => Ended::Failed(Failure::Refused(Refusal::Unallocated)),
                _ => Ended::Failed(Failure::Broken),
            });
        }
        self.pump(now, peer);
    }

    fn on_message(&mut self, from: NodeId, words: Vec<u64>) {
        match Message::parse(&words) {
            Some(Message::Call(..)) => self.asked.push_back((from, words)),
            Some(Message::Reply(number, reply)) => match self.calls.remove(&number) {
                Some((asked, ticket)) if asked == from => ticket.end(Ended::Reply(reply)),
                Some(call) => {
                    self.calls.insert(number, call);
                    self.malformed += 1;
                }
                None => self.malformed += 1,
            },
            None => self.malformed += 1,
        }
    }

    /// True if the connection works.
    pub(super) fn is_connected(&self, peer: NodeId) -> bool {
        self.connections.is_connected(&self.device, peer)
    }
}
