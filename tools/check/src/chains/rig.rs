//! What clients and metadata servers ask of the rack: the seam between them and everything else.
//!
//! What must always hold: what is asked is done once, and answered, or its connection has ended; what is posted ends.

use std::collections::{BTreeMap, BTreeSet};

use nic::regions::Reply;
use switch::relay::{Introduction, Relay};
use wire::chain_pair::{ChainPair, End};
use wire::{GlobalAddr, Incarnation, Nanos, NodeId, Refusal, Rule, Rules, SwitchEpoch};

use super::server::Server;
use super::store::{Answered, Ask, Failure, Result};
use super::truth::Truth;
use super::{ChainPlan, Seen, Store};
use crate::coherence::Blocks;
use crate::rack::Bench;
use crate::regions::chained::{Beginning, ForChains, Outcome, Posted};
use crate::regions::{Body, Message, Payload, Regions};

/// Packets of the joint world.
pub(crate) trait Packets: Copy + From<Message> + From<node::Message> {}

impl<M: Copy + From<Message> + From<node::Message>> Packets for M {}

/// READs and atomics of a client in flight.
const OUTSTANDING: u32 = 2;

/// Something that was said: what was asked, and then what was answered.
enum Said {
    Ask(Ask),
    Answer(Result<Answered>),
}

/// What all have in common.
pub(super) struct Common<R: Rules> {
    pub(super) rules: R,
    pub(super) plan: ChainPlan,
    pub(super) relay: Relay<R>,
    said: BTreeMap<u64, Said>,
    /// What was asked and is not answered: who has asked whom.
    asked: BTreeMap<u64, (NodeId, NodeId)>,
    /// What was answered, and nobody has looked at.
    answers: BTreeMap<u64, Result<Answered>>,
    /// Verbs, and how they have ended.
    verbs: BTreeMap<u64, (NodeId, Option<Outcome>)>,
    next_verb: u64,
    /// Introductions that the switch has heard, and whose node does not know yet.
    heard: BTreeSet<(NodeId, u64)>,
    introductions: Vec<u32>,
    /// By node: numbers of clients that nobody has, and the next one.
    free: Vec<(Vec<u16>, u16)>,
    /// Where the next client's numbers of calls begin.
    pub(super) first_call: u32,
    /// Stores that applications know of.
    pub(super) public: Vec<Store>,
    pub(super) truth: Truth,
    pub(super) seen: Seen,
}

impl<R: Rules> Common<R> {
    pub(super) fn new(rules: R, plan: ChainPlan, nodes: usize, relay: Relay<R>) -> Self {
        Self {
            rules,
            plan,
            relay,
            said: BTreeMap::new(),
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            verbs: BTreeMap::new(),
            next_verb: 0,
            heard: BTreeSet::new(),
            introductions: vec![0; nodes],
            free: vec![(Vec::new(), 0); nodes],
            first_call: 1,
            public: Vec::new(),
            truth: Truth::default(),
            seen: Seen::default(),
        }
    }

    /// A node has died.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.asked.retain(|_, (me, _)| *me != node);
        self.verbs.retain(|_, (me, _)| *me != node);
        self.heard.retain(|(me, _)| *me != node);
        self.introductions[node.index()] = 0;
        self.free[node.index()] = (Vec::new(), 0);
    }

    /// A number for a client's queue pairs.
    pub(super) fn take_thread(&mut self, node: NodeId) -> u16 {
        let (free, next) = &mut self.free[node.index()];
        free.pop().unwrap_or_else(|| {
            *next += 1;
            *next - 1
        })
    }

    pub(super) fn free_thread(&mut self, node: NodeId, thread: u16) {
        self.free[node.index()].0.push(thread);
    }

    /// What was answered, if it was.
    pub(super) fn answer(&mut self, number: u64) -> Option<Result<Answered>> {
        self.answers.remove(&number)
    }

    /// How a verb has ended, if it has.
    pub(super) fn outcome(&self, ticket: u64) -> Option<Outcome> {
        self.verbs.get(&ticket)?.1
    }

    pub(super) fn take_outcome(&mut self, ticket: u64) -> Option<Outcome> {
        self.verbs.remove(&ticket)?.1
    }

    /// The switch has heard what had this number.
    pub(super) fn is_heard(&mut self, node: NodeId, number: u64) -> bool {
        self.heard.remove(&(node, number))
    }

    pub(super) fn hears(&mut self, node: NodeId, number: u64) {
        self.heard.insert((node, number));
    }

    /// Nothing is asked that is not answered.
    pub(super) fn is_quiet(&self) -> bool {
        self.asked.is_empty()
    }

    pub(super) fn asked(&self) -> impl Iterator<Item = String> {
        self.asked.iter().map(|(number, (me, to))| {
            let what = match &self.said[number] {
                Said::Ask(ask) => format!("{ask:?}"),
                Said::Answer(answer) => format!("answered {answer:?}"),
            };
            format!("{me} has asked {to} {number}: {what}")
        })
    }
}

/// Metadata servers, by node and by their stores' addresses.
pub(super) type Servers<R> = Vec<BTreeMap<GlobalAddr, Server<R>>>;

/// Everything but who is at it.
pub(super) struct Rig<'a, R, M>
where
    R: Rules,
{
    pub(super) bench: &'a mut Bench<M>,
    pub(super) blocks: &'a mut Blocks<R>,
    pub(super) words: &'a mut Regions<R>,
    pub(super) common: &'a mut Common<R>,
    pub(super) servers: &'a mut Servers<R>,
}

impl<R: Rules, M: Packets> Rig<'_, R, M> {
    pub(super) fn now(&self) -> Nanos {
        self.bench.now
    }

    pub(super) fn plan(&self) -> ChainPlan {
        self.common.plan
    }

    /// The incarnation of a node that is in the rack, as far as this one knows.
    pub(super) fn incarnation_of(&self, me: NodeId, node: NodeId) -> Option<Incarnation> {
        self.words.incarnation_of(self.bench, me, node)
    }

    /// The rack's epoch, as far as a node knows.
    pub(super) fn epoch(&self, me: NodeId) -> SwitchEpoch {
        self.bench.epoch_of(me)
    }

    /// A number for an introduction: larger than all that this node has used.
    pub(super) fn next_number(&mut self, me: NodeId) -> u64 {
        let number = &mut self.common.introductions[me.index()];
        *number += 1;
        u64::from(self.bench.control.incarnation(me).0) << 32 | u64::from(*number)
    }

    /// Says something to the switch, which may miss it.
    pub(super) fn say(&mut self, me: NodeId, said: Introduction) {
        self.bench.note(None, || format!("{me} tells the switch {said:?}"));
        self.bench.send(Some(me), None, Message { from: me, body: Body::Said(said) });
    }

    // Verbs.

    /// Posts a verb.
    pub(super) fn post(&mut self, pair: ChainPair, verb: (Posted, Payload)) -> u64 {
        let ticket = self.common.next_verb;
        self.common.next_verb += 1;
        self.common.verbs.insert(ticket, (pair.owner, None));
        self.bench.note(None, || format!("{} posts {ticket} on {pair:?}: {verb:?}", pair.owner));
        self.words.post_verb(self.bench, pair, ticket, verb);
        self.take_in();
        ticket
    }

    /// Begins the client's end of a connection.
    pub(super) fn connect(&mut self, pair: ChainPair, incarnation: Incarnation, beginning: Beginning) {
        self.words.connect_chain(self.bench, pair, incarnation, beginning);
        self.take_in();
    }

    pub(super) fn beginning(&self, to_owner: wire::roce::Psn, to_peer: wire::roce::Psn) -> Beginning {
        let retries = self.common.plan.retries as u32;
        Beginning { to_owner, to_peer, outstanding: OUTSTANDING, retries }
    }

    // Calls.

    /// Asks a node something. The number under which the answer comes, if one does.
    pub(super) fn ask(&mut self, me: NodeId, to: NodeId, ask: Ask) -> Result<u64> {
        let number = self.words.next_number();
        self.bench.note(None, || format!("{me} asks {to} {number}: {ask:?}"));
        if me == to {
            let incarnation = self.bench.control.incarnation(me);
            if let Some(answer) = self.serve(me, (me, incarnation), ask) {
                self.common.answers.insert(number, answer);
            }
            return Ok(number);
        }
        if self.incarnation_of(me, to).is_none() {
            return Err(Failure::DOWN);
        }
        if !matches!(ask, Ask::Told { .. }) {
            self.common.asked.insert(number, (me, to));
        }
        self.common.said.insert(number, Said::Ask(ask));
        self.words.say(self.bench, (me, to), number, false);
        self.take_in();
        Ok(number)
    }

    /// Does what follows from what has come.
    pub(super) fn take_in(&mut self) {
        while !self.words.for_chains.is_empty() {
            for (node, what) in std::mem::take(&mut self.words.for_chains) {
                self.take_in_one(node, what);
            }
        }
    }

    fn take_in_one(&mut self, node: NodeId, what: ForChains) {
        match what {
            ForChains::Verb(ticket, outcome) => {
                self.bench.note(None, || format!("{node} is told of verb {ticket}: {outcome:?}"));
                if let Some((_, ended)) = self.common.verbs.get_mut(&ticket) {
                    *ended = Some(outcome);
                }
            }
            ForChains::Asked(from, number) => {
                let Some(incarnation) = self.words.is_served(self.bench, number, (node, from)) else {
                    return self
                        .common
                        .truth
                        .fails(|| format!("{node} serves {number} of {from}, which is down"));
                };
                let Some(Said::Ask(ask)) = self.common.said.remove(&number) else {
                    return self.common.truth.fails(|| format!("{node} is asked {number} by {from} twice"));
                };
                if let Some(answer) = self.serve(node, (from, incarnation), ask) {
                    self.bench.note(None, || format!("{node} answers {number} of {from}: {answer:?}"));
                    self.common.said.insert(number, Said::Answer(answer));
                    self.words.say(self.bench, (node, from), number, true);
                }
            }
            ForChains::Told(peer, number) => {
                let Some(Said::Answer(answer)) = self.common.said.remove(&number) else {
                    return self
                        .common
                        .truth
                        .fails(|| format!("{node} is answered {number} by {peer} twice"));
                };
                if self.common.asked.remove(&number).is_some() {
                    self.common.answers.insert(number, answer);
                }
            }
            ForChains::Cut(peer) => {
                let is_over = |_: &u64, (me, to): &mut (NodeId, NodeId)| *me == node && *to == peer;
                let over: Vec<u64> =
                    self.common.asked.extract_if(.., is_over).map(|(number, _)| number).collect();
                self.common.answers.extend(over.into_iter().map(|number| (number, Err(Failure::Broken))));
            }
        }
    }

    /// A node does what was asked of it. None: nobody waits for an answer.
    fn serve(
        &mut self,
        node: NodeId,
        (from, incarnation): (NodeId, Incarnation),
        ask: Ask,
    ) -> Option<Result<Answered>> {
        Some(match ask {
            Ask::Told { of, thread, appends } => {
                let now = self.now();
                if let Ok(server) = self.server_of(node, &of) {
                    server.told(now, client_id(from, incarnation, thread), &appends);
                }
                return None;
            }
            Ask::Region(call) => match self.words.serve_region(self.bench, self.blocks, node, &call) {
                Reply::Refused(why) => Err(Failure::Refused(why)),
                reply => Ok(reply.region().map_or(Answered::Done, |(key, _)| Answered::Region(key))),
            },
            Ask::Serve(store) => self.begin_server(node, store),
            Ask::Describe(root) => self.server_or_why(node, root).map(|server| Answered::Store(server.store)),
            Ask::Do { of, thread, number, call } => {
                let now = self.now();
                let client = client_id(from, incarnation, thread);
                match self.server_of(node, &of) {
                    Ok(server) => {
                        let its = server.store.number;
                        let answer = server.call(now, client, number, call);
                        if its != of.number {
                            self.common.truth.fails(|| {
                                format!("a client of {of:?}, at {from}, is answered by that of store {its}")
                            });
                        }
                        answer
                    }
                    Err(why) => Err(why),
                }
            }
            Ask::Connect { thread, to_memory, to_client } => {
                let pair = ChainPair { owner: node, peer: from, end: End::Memory, thread };
                let beginning = self.beginning(to_memory, to_client);
                match self.words.connect_chain(self.bench, pair, incarnation, beginning) {
                    true => Ok(Answered::Done),
                    false => Err(Failure::DOWN),
                }
            }
            Ask::Fence { node: dead, incarnation } => {
                self.words.fence(self.bench, node, (dead, incarnation));
                Ok(Answered::Done)
            }
            Ask::End(store) => match self.server_of(node, &store) {
                Ok(server) => {
                    server.end();
                    Ok(Answered::Done)
                }
                Err(why) => Err(why),
            },
        })
    }

    fn server_or_why(&mut self, node: NodeId, root: GlobalAddr) -> Result<&mut Server<R>> {
        match self.servers[node.index()].get_mut(&root).filter(|server| !server.has_ended()) {
            Some(server) => Ok(server),
            None => Err(Failure::Refused(Refusal::Unallocated)),
        }
    }

    /// That of this store: another one may have its address by now.
    fn server_of(&mut self, node: NodeId, store: &Store) -> Result<&mut Server<R>> {
        let server = self.server_or_why(node, store.root)?;
        if server.store.is(store) { Ok(server) } else { Err(Failure::Refused(Refusal::Unallocated)) }
    }

    fn begin_server(&mut self, node: NodeId, store: Store) -> Result<Answered> {
        let is_its_incarnation = self.incarnation_of(node, node) == Some(store.incarnation)
            || !self.common.rules.holds(Rule::RegionsBeginInTheirIncarnation);
        if !is_its_incarnation || self.incarnation_of(node, store.memory.home()) != Some(store.of) {
            return Err(Failure::DOWN);
        }
        let machine = &self.blocks.nodes[node.index()].0;
        let tag = machine.config().block.tag(store.root);
        if store.root.home() != node || machine.discipline_of(tag) != Some(wire::Discipline::Chain) {
            return Err(Failure::Refused(Refusal::NotAnAllocation));
        }
        if self.server_or_why(node, store.root).is_ok() {
            return Err(Failure::Refused(Refusal::NotAnAllocation));
        }
        let incarnation = self.bench.control.incarnation(node);
        if store.incarnation != incarnation {
            self.common.truth.fails(|| format!("{store:?} begins at {node} in {incarnation:?}"));
        }
        let store = Store { incarnation, ..store };
        let thread = self.common.take_thread(node);
        let epoch = self.epoch(node);
        let server = Server::new(self.common.rules, store, thread, epoch, &self.common.plan);
        // One that has ended and tells the switch so is somewhere else by now.
        if let Some(before) = self.servers[node.index()].insert(store.root, server) {
            let elsewhere = GlobalAddr::from_bits(store.root.bits() + 1 + u64::from(thread));
            self.servers[node.index()].insert(elsewhere, before);
        }
        self.common.seen.stores += 1;
        Ok(Answered::Store(store))
    }
}

/// How the metadata server knows a client.
fn client_id(node: NodeId, incarnation: Incarnation, thread: u16) -> chain::metadata::ClientId {
    chain::metadata::ClientId(u64::from(incarnation.0) << 16 | u64::from(node.0) << 10 | u64::from(thread))
}

/// Whose client that is.
pub(super) fn whose(client: chain::metadata::ClientId) -> (NodeId, Incarnation) {
    (NodeId((client.0 >> 10 & 63) as u16), Incarnation((client.0 >> 16) as u32))
}
