//! Queue pairs between clients of chains and memory, on the devices that words and objects use, too: each client has its own to
//! each memory, and all their packets pass the switch.
//!
//! As live racks have them. What must always hold: a connection that begins anew has executed nothing of what came before from
//! then on; what is in flight on one that breaks ends, and nobody knows whether it was done.

use std::collections::{BTreeMap, VecDeque};

use nic::regions::{self, Call, Reply};
use nic::verbs::{Completion, CqNumber, Depth, Mtu, PostError, Remote, Status, ToReceive, ToSend};
use wire::chain_pair::{ChainPair, End};
use wire::roce::{Psn, QpNumber};
use wire::{Incarnation, Nanos, NodeId, Rules};

use super::nic::{Event, Message, Nic, Payload, What, Work};
use super::world::Regions;
use crate::coherence::Blocks;
use crate::rack::Bench;

/// Work that is posted to a queue pair at a time.
const SENDS: usize = 16;
/// Packets in flight on one.
const WINDOW: u32 = 16;
/// Until a packet is sent again.
pub(crate) const TIMEOUT: Nanos = Nanos::from_micros(150);
/// How long the acknowledgement of a WRITE waits for what comes behind it.
const ACK_DELAY: Nanos = Nanos::from_micros(5);

/// The first word of a message that asks something about chains, and of one that answers; the second one says which. What is said
/// does not change on its way, so it is kept where both ends find it.
pub(super) const CHAIN_ASK: u64 = u64::MAX;
pub(super) const CHAIN_REPLY: u64 = u64::MAX - 1;

/// What a client of chains has done to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Posted {
    Read { remote: Remote, len: u32 },
    Write { remote: Remote },
    CompareSwap { remote: Remote, compare: u64, swap: u64 },
}

/// How that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// What was read; or it was written.
    Answer(Payload),
    /// What the word was.
    Original(u64),
    /// Nobody knows whether it was done.
    Broken,
    /// That incarnation of the memory's node is over.
    Down,
}

/// What has come of chains.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ForChains {
    /// A verb has ended.
    Verb(u64, Outcome),
    /// That node asks what has this number.
    Asked(NodeId, u64),
    /// That node has answered it.
    Told(NodeId, u64),
    /// The connection to that node, over which is asked and answered, has ended.
    Cut(NodeId),
}

/// How a connection begins, as one of its ends knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beginning {
    /// The first packet to this end.
    pub(crate) to_owner: Psn,
    /// The first packet to the other one.
    pub(crate) to_peer: Psn,
    /// READs and atomics of the client in flight at a time.
    pub(crate) outstanding: u32,
    /// How often a request is sent again until its connection is given up.
    pub(crate) retries: u32,
}

struct Link {
    pair: ChainPair,
    /// Of the other node.
    incarnation: Incarnation,
    is_connected: bool,
    completions: CqNumber,
    /// Work that waits to be posted.
    waiting: VecDeque<u64>,
}

/// The queue pairs of a node that are about chains.
#[derive(Default)]
pub(crate) struct Chained {
    links: BTreeMap<QpNumber, Link>,
    /// Those that have failed in this call.
    broken: Vec<QpNumber>,
    /// Those that may have completed something.
    touched: Vec<QpNumber>,
    /// Lives of nodes that are over as far as this memory goes.
    over: BTreeMap<NodeId, Incarnation>,
}

impl Chained {
    /// A queue pair has failed.
    pub(super) fn break_off(&mut self, number: QpNumber) {
        self.broken.push(number);
        self.touched.push(number);
    }

    pub(super) fn touch(&mut self, number: QpNumber) {
        self.touched.push(number);
    }
}

impl<R: Rules> Nic<R> {
    /// Begins a connection, or begins it anew: what was in flight has failed. False if that incarnation of the other node is over.
    fn connect_chain(&mut self, pair: ChainPair, incarnation: Incarnation, beginning: Beginning) -> bool {
        if self.chains.over.get(&pair.peer).is_some_and(|over| incarnation <= *over)
            && pair.end == End::Memory
        {
            return false;
        }
        let number = pair.number();
        if self.chains.links.contains_key(&number) {
            self.disconnect_chain(number, Outcome::Broken);
        } else {
            // Nothing is ever completed at the memory.
            let sends = if pair.end == End::Client { SENDS } else { 0 };
            let completions = self.device.create_completion_queue(sends);
            self.device.create_numbered(number, completions, completions, Depth { sends, receives: 0 });
            let link = Link { pair, incarnation, is_connected: false, completions, waiting: VecDeque::new() };
            self.chains.links.insert(number, link);
        }
        let Beginning { to_owner, to_peer, outstanding, retries } = beginning;
        let receive = ToReceive {
            remembered: outstanding + 1,
            longest: wire::chains::UNIT as u32,
            // What is answered to the compare-and-swap acknowledges the WRITE in front of it.
            ack_delay: ACK_DELAY,
            ..ToReceive::new(pair.peer, pair.other().number(), Mtu::B256, to_owner)
        };
        let send = ToSend {
            timeout: TIMEOUT,
            retries,
            outstanding,
            window: WINDOW,
            read_chunk: 1,
            ..ToSend::new(to_peer)
        };
        self.device.init(number).expect("it is new, or was reset");
        self.device.ready_to_receive(number, receive).expect("it was begun");
        self.device.ready_to_send(number, send).expect("it can receive");
        let link = self.chains.links.get_mut(&number).expect("it was made");
        (link.incarnation, link.is_connected) = (incarnation, true);
        true
    }

    /// Ends a connection: nothing more is executed that came over it.
    fn disconnect_chain(&mut self, number: QpNumber, why: Outcome) {
        let Some(link) = self.chains.links.get_mut(&number) else { return };
        link.is_connected = false;
        link.waiting.clear();
        self.device.reset(number).expect("it is there");
        self.kept.retain(|slot, _| slot.queue_pair != number);
        let failed = self.works.extract_if(.., |_, work| work.chain == Some(number));
        self.events.extend(failed.filter_map(|(_, work)| Some(Event::Verb(work.thread? as u64, why))));
    }

    /// An incarnation of a node is over: ends all connections with it.
    pub(super) fn end_chains_of(&mut self, node: NodeId, incarnation: Incarnation) {
        let over = self.chains.over.entry(node).or_insert(incarnation);
        *over = incarnation.max(*over);
        let its = |(number, link): (&QpNumber, &Link)| {
            (link.pair.peer == node && link.incarnation <= incarnation && link.is_connected)
                .then_some(*number)
        };
        let its: Vec<QpNumber> = self.chains.links.iter().filter_map(its).collect();
        its.into_iter().for_each(|number| self.disconnect_chain(number, Outcome::Down));
    }

    /// Posts work to a client's queue pair. If that is not connected, it has failed, and was not done.
    fn post_chain(&mut self, now: Nanos, work: Work) {
        let number = work.chain.expect("it names a queue pair");
        match self.chains.links.get_mut(&number).filter(|link| link.is_connected) {
            Some(link) => {
                link.waiting.push_back(self.next);
                self.works.insert(self.next, work);
                self.next += 1;
            }
            None => {
                self.events.extend(work.thread.map(|ticket| Event::Verb(ticket as u64, Outcome::Broken)));
                return;
            }
        }
        self.pump_chain(now, number);
        self.settle(now);
    }

    fn pump_chain(&mut self, now: Nanos, queue_pair: QpNumber) {
        while let Some(link) = self.chains.links.get(&queue_pair)
            && let Some(&number) = link.waiting.front()
        {
            let request = self.request(number);
            match self.device.post_send(now, queue_pair, request, &mut self.effects) {
                Ok(()) => {
                    let link = self.chains.links.get_mut(&queue_pair).expect("it was looked at");
                    link.waiting.pop_front();
                }
                Err(PostError::QueueFull | PostError::CompletionQueueFull | PostError::NotReady) => break,
                Err(why) => panic!("{request:?}: {why}"),
            }
        }
        self.chains.touched.push(queue_pair);
    }

    /// What was completed on a queue pair of chains.
    pub(super) fn poll_chains(&mut self) -> Option<Completion> {
        while let Some(number) = self.chains.broken.pop() {
            let Some(link) = self.chains.links.get_mut(&number) else { continue };
            link.is_connected = false;
            for at in std::mem::take(&mut link.waiting) {
                if let Some(ticket) = self.works.remove(&at).and_then(|work| work.thread) {
                    self.events.push(Event::Verb(ticket as u64, Outcome::Broken));
                }
            }
        }
        while let Some(number) = self.chains.touched.last() {
            let link = self.chains.links.get(number);
            if let Some(completion) = link.and_then(|link| self.device.poll(link.completions)) {
                return Some(completion);
            }
            self.chains.touched.pop();
        }
        None
    }

    pub(super) fn complete_chain(&mut self, now: Nanos, completion: &Completion) {
        let Some(work) = self.works.remove(&completion.id.0) else { return };
        if let Some(ticket) = work.thread {
            let swaps = matches!(work.what, What::Verb(Posted::CompareSwap { .. }));
            let outcome = match (completion.status, completion.original) {
                (Status::Success, Some(original)) if swaps => Outcome::Original(original),
                (Status::Success, _) => Outcome::Answer(work.landing),
                _ => Outcome::Broken,
            };
            self.events.push(Event::Verb(ticket as u64, outcome));
        }
        self.pump_chain(now, completion.queue_pair);
    }
}

impl<R: Rules> Regions<R> {
    /// The incarnation of another node, or of this one, that is in the rack, as far as this one knows.
    pub(crate) fn incarnation_of<M: Copy>(
        &self,
        bench: &Bench<M>,
        me: NodeId,
        node: NodeId,
    ) -> Option<Incarnation> {
        if me == node {
            Some(bench.control.incarnation(me))
        } else {
            self.nics[me.index()].incarnation_of(node)
        }
    }

    /// Begins a node's end of a connection.
    pub(crate) fn connect_chain<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        pair: ChainPair,
        incarnation: Incarnation,
        beginning: Beginning,
    ) -> bool {
        let begun = self.nics[pair.owner.index()].connect_chain(pair, incarnation, beginning);
        self.settle(bench, pair.owner);
        begun
    }

    /// An incarnation of a node is over, as this memory is told.
    pub(crate) fn fence<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        me: NodeId,
        (node, incarnation): (NodeId, Incarnation),
    ) {
        self.nics[me.index()].end_chains_of(node, incarnation);
        self.settle(bench, me);
    }

    /// Posts a verb, of whoever has this ticket.
    pub(crate) fn post_verb<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        pair: ChainPair,
        ticket: u64,
        (verb, source): (Posted, Payload),
    ) {
        let landing = match verb {
            Posted::Read { len, .. } => Payload::of_bytes(&vec![0; len.div_ceil(8) as usize], len as usize),
            _ => Payload::default(),
        };
        let (what, thread) = (What::Verb(verb), Some(ticket as usize));
        let work = Work { peer: pair.peer, what, thread, source, landing, chain: Some(pair.number()) };
        self.nics[pair.owner.index()].post_chain(bench.now, work);
        self.settle(bench, pair.owner);
    }

    /// A number for something that is said about chains.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.next_call += 1;
        self.next_call - 1
    }

    /// Asks another node what has this number, or answers it. False: that node is down.
    pub(crate) fn say<M: Copy + From<Message>>(
        &mut self,
        bench: &mut Bench<M>,
        (me, peer): (NodeId, NodeId),
        number: u64,
        is_answer: bool,
    ) -> bool {
        let Some(theirs) = self.nics[me.index()].incarnation_of(peer) else { return false };
        if !is_answer {
            self.truth.is_made(number, (me, bench.control.incarnation(me)), (peer, theirs));
        }
        let words = [if is_answer { CHAIN_REPLY } else { CHAIN_ASK }, number];
        let source = Payload::of(&words);
        let landing = Payload::default();
        let work = Work { peer, what: What::Send, thread: None, source, landing, chain: None };
        self.post(bench, me, work);
        true
    }

    /// A node answers what another one has asked: in which incarnation that one did, as far as this one knows.
    pub(crate) fn is_served<M: Copy>(
        &mut self,
        bench: &Bench<M>,
        number: u64,
        (node, from): (NodeId, NodeId),
    ) -> Option<Incarnation> {
        let theirs = self.nics[node.index()].incarnation_of(from)?;
        self.truth.is_served(number, (from, theirs), (node, bench.control.incarnation(node)));
        Some(theirs)
    }

    /// What a home does about a region of chains.
    pub(crate) fn serve_region<M: Copy>(
        &mut self,
        bench: &Bench<M>,
        blocks: &mut Blocks<R>,
        node: NodeId,
        call: &Call,
    ) -> Reply {
        self.touch(node);
        let incarnation = bench.control.incarnation(node);
        let (machine, store) = &mut blocks.nodes[node.index()];
        let reply = regions::serve(self.rules, &mut self.here((machine, store), incarnation), call, &[]);
        self.truth.is_of_its_incarnation(call, (node, incarnation), &reply);
        reply
    }
}
