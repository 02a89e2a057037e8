//! The switch's part in chains: it forwards packets between clients and memory, and where it steers it lets its program see each of
//! them first.
//!
//! In the switch, one of the programs of its [`Chip`](crate::Chip). It knows which incarnations of nodes there are, which connections, and which
//! store is steered; a driver moves payloads, and tells it what nodes say ([`Introduction`]).
//!
//! What must always hold: a packet comes from the node that has the other end of the queue pair that it is for, or it goes
//! nowhere; the program knows of a connection before its first packet.

mod introduction;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

use sorted::Map;
use wire::chain_pair::{self, ChainPair};
use wire::roce::{Key, Packet, Psn, QpNumber};
use wire::{AllRules, Incarnation, Nanos, NodeId, Rule, Rules, SwitchEpoch};

use crate::chains::{Action, Connection, End, Sent, Steering};

pub use introduction::Introduction;

/// Scans that are remembered.
const MOST_SCANS: usize = 64;
/// Bytes of a payload that the program looks at.
pub const HEAD: usize = 32;

/// The switch's part in chains.
#[derive(Debug)]
pub struct Relay<R: Rules = AllRules> {
    rules: R,
    nodes: usize,
    /// The nodes that are in the rack, each in which incarnation, once that is known.
    incarnations: Option<Vec<Option<Incarnation>>>,
    /// The first epoch of this switch. Nobody is in it who knew only an earlier switch; and before there is one, everybody does.
    since: Option<SwitchEpoch>,
    forwarded: u64,
    outdated: u64,
    program: Option<Box<Steering<R>>>,
    /// How long a tail counts that somebody has found, from when he began to look.
    found: Nanos,
    /// Connections that the program was told of, by the client's queue pair.
    known: Map<QpNumber, Known>,
    /// The store whose packets it steers.
    steered: Option<Steered>,
    /// Who has begun to look for tails, when, and of which store.
    scans: Map<(NodeId, u64), (Nanos, StoreId)>,
}

/// A connection.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Of the client's node.
    incarnation: Incarnation,
    /// The introduction's.
    number: u64,
    of: Option<Steered>,
}

/// A store all of whose first copies are in one memory: its node, of which incarnation, and what its NIC calls the memory. Keys and units of two stores are the same numbers, so
/// the program steers one store, and the packets of others pass as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct StoreId(NodeId, u16, Key);

/// A store that is steered, or may be; and the node of its metadata server, of which incarnation. (One with copies outlives that: it names its
/// memory's node.)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Steered {
    id: StoreId,
    server: (NodeId, Incarnation),
}

impl Relay {
    /// Of a rack of so many nodes, with such a program, if there is one. A tail that somebody has found counts for so long from when he
    /// began to look.
    pub fn new(nodes: usize, program: Option<Steering>, found: Nanos) -> Self {
        Self::with_rules(AllRules, nodes, program, found)
    }
}

impl<R: Rules> Relay<R> {
    /// The same, of which some rules may not hold: for checkers.
    pub fn with_rules(rules: R, nodes: usize, program: Option<Steering<R>>, found: Nanos) -> Self {
        Self {
            rules,
            nodes,
            incarnations: None,
            since: None,
            forwarded: 0,
            outdated: 0,
            program: program.map(Box::new),
            found,
            known: Map::new(),
            steered: None,
            scans: Map::new(),
        }
    }

    /// Packets that were forwarded.
    pub const fn forwarded(&self) -> u64 {
        self.forwarded
    }

    /// What it steers with, if it does.
    pub fn program(&self) -> Option<&Steering<R>> {
        self.program.as_deref()
    }

    /// An epoch begins with these incarnations of nodes. What another one sends has no effect from now on: it may be a memory that does not know yet that it
    /// was declared dead, and whose copies others have ceased to write to. A store is over with its memory, or with its metadata server, and another one
    /// may be steered. The first one of a switch is what names it, to those who introduce something.
    pub fn begin_epoch(&mut self, epoch: SwitchEpoch, incarnations: &[Option<Incarnation>]) {
        self.since.get_or_insert(epoch);
        self.incarnations = Some(incarnations.to_vec());
        if self.steered.is_some_and(|store| !self.goes_on(&store)) {
            self.over();
        }
    }

    /// True if nothing is known of that node's death, in the incarnation of which this holds.
    fn is_up(&self, node: NodeId, is_it: impl Fn(Incarnation) -> bool) -> bool {
        let incarnation =
            |incarnations: &Vec<Option<Incarnation>>| incarnations.get(node.index()).copied().flatten();
        self.incarnations.as_ref().is_none_or(|incarnations| incarnation(incarnations).is_some_and(is_it))
    }

    /// True if both nodes are up on which a store depends. Clients of one whose metadata server has died go on for as long as they know tails and
    /// have slots, but are not steered any more: nobody would ever say that it is over.
    fn goes_on(&self, Steered { id: StoreId(memory, of, _), server: (node, incarnation) }: &Steered) -> bool {
        self.is_up(*memory, |incarnation| incarnation.0 as u16 == *of)
            && self.is_up(*node, |now| now == *incarnation)
    }

    /// The store that is steered is over.
    fn over(&mut self) {
        let store = self.steered.take();
        self.end(|_, known| known.of == store);
    }

    /// A packet of that node, whose payload begins with these bytes, at most [`HEAD`] of them: to whom it goes, and what of it. None: it may
    /// not be here. Then what the switch itself sends is to be asked for ([`Relay::next_sent`]).
    pub fn on_packet(
        &mut self,
        now: Nanos,
        from: NodeId,
        packet: &mut Packet,
        head: &[u8],
    ) -> Option<(NodeId, Action)> {
        let pair = ChainPair::of(packet.to).filter(|pair| from == pair.peer);
        let is_alive = |pair: &ChainPair| self.is_up(pair.peer, |_| true);
        let pair = pair.filter(|pair| pair.owner.index() < self.nodes).filter(is_alive)?;
        self.forwarded += 1;
        let action = match &mut self.program {
            Some(program) => program.on_packet(now, pair.owner, packet, head),
            None => Action::Forward,
        };
        Some((pair.owner, action))
    }

    /// The next packet that the switch itself sends: a read once more.
    pub fn next_sent(&mut self) -> Option<Sent> {
        self.program.as_mut()?.next_sent()
    }

    /// A connection begins, as its client says. False if something newer is known of it.
    fn begin(&mut self, client: ChainPair, first_psn: Psn, as_asked: bool, said: Known) -> bool {
        let last = self.known.get(&client.number()).map(|known| known.number);
        if last.is_some_and(|last| said.number <= last) {
            return last == Some(said.number);
        }
        // Who has not heard yet of a death may say it, or say it again and again since before.
        let of = said.of.filter(|of| self.goes_on(of));
        self.known.insert(client.number(), Known { of, ..said });
        let Some(program) = &mut self.program else { return true };
        if self.steered.is_none() && of.is_some() {
            self.steered = of;
            program.forget();
        }
        let region = of.filter(|of| Some(*of) == self.steered).map_or(Key(0), |of| of.id.2);
        let end = |pair: ChainPair| End { node: pair.owner, queue_pair: pair.number() };
        let (client, memory) = (end(client), end(client.other()));
        // The address of a unit is its number, times its bytes. If there are too many connections, this one passes as it is.
        program.connect(Connection { client, memory, first_psn, region, base: 0 });
        if as_asked {
            program.read_as_asked(client);
        }
        true
    }

    /// All these connections are over.
    fn end(&mut self, is_over: impl Fn(ChainPair, &Known) -> bool) {
        let its = |(number, known): (&QpNumber, &Known)| {
            let pair = ChainPair::of(*number).expect("a client's queue pair");
            is_over(pair, known).then_some((*number, pair.owner))
        };
        let its: Vec<(QpNumber, NodeId)> = self.known.iter().filter_map(its).collect();
        for (queue_pair, node) in its {
            self.known.remove(&queue_pair);
            if let Some(program) = &mut self.program {
                program.disconnect(End { node, queue_pair });
            }
        }
    }

    /// It tells of something that began when another switch was there, and of which this one may have missed what counts.
    fn is_outdated(&self, said: &Introduction) -> bool {
        said.switch().is_some_and(|named| self.since.is_none_or(|since| named < since))
    }

    /// What a node says about chains; what it is answered.
    pub fn on_introduction(&mut self, now: Nanos, node: NodeId, said: &Introduction) -> Option<Introduction> {
        let number = said.number();
        // Whoever said it will know of this switch's epoch soon, and begin anew what he has told of.
        if self.rules.holds(Rule::IntroductionsNameTheSwitch) && self.is_outdated(said) {
            self.outdated += 1;
            return None;
        }
        match *said {
            Introduction::Begin { client, first, region, of, incarnation, server, as_asked, .. } => {
                let is_client = |pair: &ChainPair| pair.end == chain_pair::End::Client;
                let pair = ChainPair::of(client).filter(is_client).filter(|pair| node == pair.owner)?;
                let id = StoreId(pair.peer, of, region);
                let of = (region != Key(0)).then_some(Steered { id, server });
                let heard = self.begin(pair, first, as_asked, Known { incarnation, number, of });
                return heard.then_some(Introduction::Heard { number });
            }
            Introduction::End { node, incarnation, .. } => {
                self.end(|pair, known| pair.owner == node && known.incarnation <= incarnation);
            }
            Introduction::Over { memory, of, region, .. } => {
                if self.steered.is_some_and(|store| store.id == StoreId(memory, of, region)) {
                    self.over();
                }
            }
            Introduction::Scan { memory, of, region, .. } => {
                if self.scans.len() >= MOST_SCANS {
                    self.scans.pop_first();
                }
                self.scans.entry((node, number)).or_insert((now, StoreId(memory, of, region)));
            }
            Introduction::Tail { key, at, version, .. } => {
                let (began, store) = self.scans.get(&(node, number))?;
                if self.steered.is_some_and(|steered| steered.id == *store)
                    && let Some(program) = &mut self.program
                    && now.saturating_sub(*began) < self.found
                {
                    program.preload(key, at, version);
                }
                return None;
            }
            Introduction::Heard { .. } => return None,
        }
        Some(Introduction::Heard { number })
    }
}
