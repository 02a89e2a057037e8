//! What the switch does with packets between clients of chains and memory: it carries them on, and where it steers it lets its program
//! see each of them first.
//!
//! In the switch's process, or in an embedded rack under a lock. What must always hold: a packet comes from the node that has the
//! other end of the queue pair that it is for, or it goes nowhere; the program knows of a connection before its first packet.

use std::collections::BTreeMap;

use nic::verbs::Mtu;
use switch::steering::{self, Action, Binding, Connection, End, Steering};
use transport::{Contents, PlaceId};
use wire::chain_pair::{self, ChainPair};
use wire::roce::{Key, Packet, Psn, QpNumber};
use wire::{Incarnation, Nanos, NodeId};

use super::introduction::Introduction;
use super::times::{FOUND, LIFETIME, SLOT_LIFETIMES};
use crate::config;

/// Keys that the program has room for.
const KEYS: usize = 100_000;
/// Connections that it steers; what others send passes as it is. Each takes a record for each number that is remembered, and there is room
/// for 16 Ki of them beside the other programs.
const CONNECTIONS: usize = 128;
/// Packet numbers of a connection that the program remembers: far more than a requester has under way, because others' appends may wait
/// for the acknowledgement of one of them, and are in doubt if it is forgotten.
const WINDOW: u32 = 128;
/// Cells for entries that were written. An append needs one until it is acknowledged.
const SLOTS: usize = 1 << 14;
/// A read of an old entry is steered as long as that has one: for some seconds' writes. With so many the program wants a chip without FlowCC;
/// beside it there is room for `SLOTS`, which are a second's writes.
const SLOTS_OF_READS: usize = 1 << 16;
/// Scans that are remembered.
const MOST_SCANS: usize = 64;
/// How its program binds words to queue pairs. Clients post both steps of an append at once if that allows it (`session.rs`).
pub(super) const BINDING: Binding = Binding::NONE;
/// Bytes of a payload that the program looks at.
const HEAD: usize = 32;

/// What the switch has done for chains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SteeringCounts {
    /// Packets that were carried on.
    pub carried: u64,
    /// Appends that were sent to the tail, and those of them that would have gone elsewhere.
    pub steered: u64,
    /// The latter.
    pub moved: u64,
    /// Appends that passed as they were.
    pub unsteered: u64,
    /// Appends that were answered as refused.
    pub refused: u64,
    /// Appends of which nobody knows what became.
    pub doubted: u64,
    /// Acknowledgements that were dropped because the one in front was missing.
    pub waited: u64,
    /// Reads that were sent to the tail.
    pub reads: u64,
    /// Of those, the ones to a tail whose append was not acknowledged.
    pub reads_ahead: u64,
    /// Answers to reads that became reads again, because that append was still not acknowledged, or had failed.
    pub reads_turned: u64,
    /// Answers to reads of connections from before a restart, which were refused: those connections begin anew.
    pub reads_refused: u64,
    /// Tails that it was told after a restart, and took.
    pub preloaded: u64,
}

/// The switch's part in chains.
#[derive(Debug)]
pub(crate) struct Relay {
    nodes: usize,
    /// The nodes that are in the rack, each in which life, once that is known.
    lives: Option<Vec<Option<Incarnation>>>,
    carried: u64,
    program: Option<Box<Steering>>,
    /// Connections that the program was told of, by the client's queue pair.
    known: BTreeMap<QpNumber, Known>,
    /// The store whose packets it steers.
    steered: Option<Steered>,
    /// Who has begun to look for tails, when, and of which store.
    scans: BTreeMap<(NodeId, u64), (Nanos, StoreId)>,
}

/// A connection.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Of the client's node.
    life: Incarnation,
    /// The introduction's.
    number: u64,
    of: Option<Steered>,
}

/// A store of one memory: its node, of which life, and what its NIC calls the memory. Keys and units of two stores are the same numbers, so
/// the program steers one store, and the packets of others pass as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct StoreId(NodeId, u16, Key);

/// A store that is steered, or may be; and the node of its metadata server, of which life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Steered {
    id: StoreId,
    server: (NodeId, Incarnation),
}

impl Relay {
    /// Of a rack of so many nodes, with such a program, if there is one. A packet carries so many bytes at most.
    ///
    /// # Panics
    /// If the chip has no room for the program.
    pub(crate) fn new(nodes: usize, steering: Option<config::Steering>, mtu: Mtu) -> Self {
        let config = |how: config::Steering| steering::Config {
            keys: KEYS,
            top: how.keys,
            connections: CONNECTIONS,
            window: WINDOW,
            slots: if how.reads { SLOTS_OF_READS } else { SLOTS },
            // Of two packets, one could come from another entry.
            reads: if how.reads { mtu.bytes() } else { 0 },
            lifetime: LIFETIME,
            slot_lifetimes: if how.reads { SLOT_LIFETIMES } else { 1 },
            binding: BINDING,
            ..steering::Config::default()
        };
        let program = steering.map(|how| Steering::new(&config(how)).expect("the program fits the chip"));
        let (known, scans) = (BTreeMap::new(), BTreeMap::new());
        Self { nodes, lives: None, carried: 0, program: program.map(Box::new), known, steered: None, scans }
    }

    /// What it has done.
    pub(crate) fn counts(&self) -> SteeringCounts {
        let mut counts = SteeringCounts { carried: self.carried, ..SteeringCounts::default() };
        if let Some(program) = &self.program {
            let its = program.counters();
            let unsteered = steering::Unsteered::ALL.iter().map(|why| its.unsteered(*why)).sum();
            counts = SteeringCounts {
                steered: its.steered,
                moved: its.moved,
                unsteered,
                refused: its.refused,
                doubted: its.doubted,
                waited: its.waited,
                reads: its.reads,
                reads_ahead: its.reads_ahead,
                reads_turned: its.reads_turned,
                reads_refused: its.reads_refused,
                preloaded: its.preloaded,
                ..counts
            };
        }
        counts
    }

    /// An epoch begins with these lives of nodes. What another one sends has no effect from now on: it may be a memory that does not know yet that it
    /// was declared dead, and whose copies others have ceased to write to. A store is over with its memory, or with its metadata server, and another one
    /// may be steered.
    pub(crate) fn begin_epoch(&mut self, lives: &[Option<Incarnation>]) {
        self.lives = Some(lives.to_vec());
        if self.steered.is_some_and(|store| !self.goes_on(&store)) {
            self.over();
        }
    }

    /// True if nothing is known of that node's death, in the life of which this holds.
    fn is_up(&self, node: NodeId, is_it: impl Fn(Incarnation) -> bool) -> bool {
        let life = |lives: &Vec<Option<Incarnation>>| lives.get(node.index()).copied().flatten();
        self.lives.as_ref().is_none_or(|lives| life(lives).is_some_and(is_it))
    }

    /// True if both nodes are up on which a store depends. Clients of one whose metadata server has died go on for as long as they know tails and
    /// have slots, but are not steered any more: nobody would ever say that it is over.
    fn goes_on(&self, Steered { id: StoreId(memory, of, _), server: (node, life) }: &Steered) -> bool {
        self.is_up(*memory, |life| life.0 as u16 == *of) && self.is_up(*node, |now| now == *life)
    }

    /// The store that is steered is over.
    fn over(&mut self) {
        let store = self.steered.take();
        self.end(|_, known| known.of == store);
    }

    /// A packet with so many bytes of payload; `send` sends it on. False if it may not be.
    pub(crate) fn on_packet(
        &mut self,
        now: Nanos,
        from: PlaceId,
        (packet, len, contents): (&Packet, usize, Contents<'_>),
        mut send: impl FnMut(NodeId, &Packet, usize, Contents<'_>),
    ) -> bool {
        let pair = ChainPair::of(packet.to).filter(|pair| from.as_node() == Some(pair.peer));
        let is_alive = |pair: &ChainPair| self.is_up(pair.peer, |_| true);
        let pair = pair.filter(|pair| pair.owner.index() < self.nodes).filter(is_alive);
        let Some(pair) = pair else { return false };
        self.carried += 1;
        let Some(program) = &mut self.program else {
            send(pair.owner, packet, len, contents);
            return true;
        };
        let (mut packet, mut head) = (*packet, [0; HEAD]);
        let head = &mut head[..len.min(HEAD)];
        if !head.is_empty() {
            contents.copy_to(0, head);
        }
        match program.on_packet(now, pair.owner, &mut packet, head) {
            Action::Forward => send(pair.owner, &packet, len, contents),
            Action::Bare => send(pair.owner, &packet, 0, Contents::None),
            Action::Drop => {}
        }
        // Reads that are sent once more.
        while let Some(sent) = program.next_sent() {
            send(sent.to, &sent.packet, 0, Contents::None);
        }
        true
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

    /// What a node says about chains; what it is answered.
    pub(crate) fn on_introduction(
        &mut self,
        now: Nanos,
        from: PlaceId,
        said: &Introduction,
    ) -> Option<Introduction> {
        let node = from.as_node()?;
        let number = said.number();
        match *said {
            Introduction::Begin { client, first, region, of, life, server, as_asked, .. } => {
                let is_client = |pair: &ChainPair| pair.end == chain_pair::End::Client;
                let pair = ChainPair::of(client).filter(is_client).filter(|pair| node == pair.owner)?;
                let id = StoreId(pair.peer, of, region);
                let of = (region != Key(0)).then_some(Steered { id, server });
                let heard = self.begin(pair, first, as_asked, Known { life, number, of });
                return heard.then_some(Introduction::Heard { number });
            }
            Introduction::End { node, life, .. } => {
                self.end(|pair, known| pair.owner == node && known.life <= life);
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
                    && now.saturating_sub(*began) < FOUND
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

#[cfg(test)]
mod tests {
    use super::*;
    use wire::chain::{Class, EntryVersion, Location};
    use wire::roce::{Extension, Opcode};

    const STEERS: config::Steering = config::Steering { keys: 8, reads: true, preload: false };

    fn pair(client: u16, memory: u16) -> ChainPair {
        ChainPair::of_client(NodeId(client), NodeId(memory), 5)
    }

    /// Of three nodes; 0: it is dead.
    fn lives_of(lives: [u32; 3]) -> [Option<Incarnation>; 3] {
        lives.map(|life| (life != 0).then_some(Incarnation(life)))
    }

    /// The metadata server of the stores here is that of node 1, in this life of it.
    const SERVER: (NodeId, Incarnation) = (NodeId(1), Incarnation(5));

    #[test]
    fn a_packet_goes_to_the_owner_of_its_queue_pair_if_it_is_from_the_other_end() {
        let mut relay = Relay::new(3, None, Mtu::B4096);
        let mut carry = |from: u16, number| {
            let packet = Packet::new(Opcode::Acknowledge, number, Psn::new(1), Extension::Plain);
            let mut to = None;
            let body = (&packet, 0, Contents::None);
            let place = PlaceId::node(NodeId(from));
            let carried = relay.on_packet(Nanos::ZERO, place, body, |node, _, _, _| to = Some(node));
            assert_eq!(carried, to.is_some());
            to
        };
        assert_eq!(carry(0, pair(0, 2).other().number()), Some(NodeId(2)));
        assert_eq!(carry(2, pair(0, 2).number()), Some(NodeId(0)));
        assert_eq!(carry(1, pair(1, 1).other().number()), Some(NodeId(1)), "to memory of its own");
        assert_eq!(carry(1, pair(0, 2).other().number()), None, "of somebody else");
        assert_eq!(carry(0, pair(0, 3).other().number()), None, "to nowhere");
        assert_eq!(carry(0, QpNumber::new(2)), None, "about something else");
    }

    #[test]
    fn nothing_passes_of_a_node_that_was_declared_dead() {
        let mut relay = Relay::new(3, None, Mtu::B4096);
        let carried = |relay: &mut Relay, from: u16, number| {
            let packet = Packet::new(Opcode::Acknowledge, number, Psn::new(1), Extension::Plain);
            let place = PlaceId::node(NodeId(from));
            relay.on_packet(Nanos::ZERO, place, (&packet, 0, Contents::None), |_, _, _, _| ())
        };
        let (request, answer) = (pair(0, 2).other().number(), pair(0, 2).number());
        for (lives, is_carried) in [([1, 1, 1], true), ([1, 1, 0], false), ([1, 1, 3], true)] {
            relay.begin_epoch(&lives_of(lives));
            assert_eq!(carried(&mut relay, 2, answer), is_carried, "{lives:?}");
            assert!(carried(&mut relay, 0, request), "it may be told");
        }
    }

    #[test]
    fn what_is_said_late_of_a_connection_means_nothing() {
        let mut relay = Relay::new(3, Some(STEERS), Mtu::B4096);
        let node = |node| PlaceId::node(NodeId(node));
        let begin = |number, life| Introduction::Begin {
            client: pair(0, 2).number(),
            first: Psn::new(9),
            region: Key(1),
            of: 0,
            life: Incarnation(life),
            server: SERVER,
            as_asked: false,
            number,
        };
        let heard = |number| Some(Introduction::Heard { number });
        assert_eq!(relay.on_introduction(Nanos::ZERO, node(0), &begin(5, 1)), heard(5));
        assert_eq!(relay.on_introduction(Nanos::ZERO, node(0), &begin(5, 1)), heard(5), "repeated");
        assert_eq!(relay.on_introduction(Nanos::ZERO, node(0), &begin(4, 1)), None, "late");
        assert_eq!(relay.on_introduction(Nanos::ZERO, node(1), &begin(6, 1)), None, "of somebody else");
        assert_eq!(relay.on_introduction(Nanos::ZERO, node(0), &begin(7, 2)), heard(7));
        let end = |life| Introduction::End { node: NodeId(0), life: Incarnation(life), number: 1 };
        assert_eq!(relay.on_introduction(Nanos::ZERO, node(1), &end(1)), heard(1));
        assert_eq!(relay.known.len(), 1, "the next life has begun");
        assert_eq!(relay.on_introduction(Nanos::ZERO, node(1), &end(2)), heard(1));
        assert!(relay.known.is_empty());
    }

    /// Whether the first append of a connection is steered, to the tail that the switch was told of a moment or so long after it was looked for.
    fn is_preloaded(found_after: Nanos) -> bool {
        let mut relay = Relay::new(3, Some(STEERS), Mtu::B4096);
        let (node, number) = (PlaceId::node(NodeId(0)), 5);
        let (memory, of, region) = (NodeId(2), 0, Key(1));
        let client = pair(0, 2).number();
        let (first, life, server, as_asked) = (Psn::new(9), Incarnation(1), SERVER, false);
        let begin = Introduction::Begin { client, first, region, of, life, server, as_asked, number: 4 };
        relay.on_introduction(Nanos(1), node, &begin);
        relay.on_introduction(Nanos(1), node, &Introduction::Scan { memory, of, region, number });
        let at = Location::new(Class::new(0).unwrap(), 7);
        let tail = Introduction::Tail { key: 9, at, version: EntryVersion(0), number };
        relay.on_introduction(Nanos(1) + found_after, node, &tail);
        relay.program.unwrap().tail(9) == Some((at, EntryVersion(0)))
    }

    #[test]
    fn a_tail_that_was_looked_for_long_ago_is_not_taken_for_one() {
        assert!(is_preloaded(Nanos(1)));
        assert!(!is_preloaded(FOUND));
    }

    #[test]
    fn the_program_fits_the_chip_beside_the_others_unless_it_steers_reads() {
        let epoch = wire::SwitchEpoch(0);
        let flowcc = switch::flowcc::Config { nodes: 64, entries: 375_000, epoch, queue: true, peeks: true };
        let locks = switch::locks::Config { at: wire::LockEnd::Switch, nodes: 64, entries: 65_536, epoch };
        let flowcc = switch::flowcc::Switch::new(&flowcc).unwrap().stage_map();
        let locks = switch::locks::Directory::new(&locks).unwrap().stage_map();
        let both = switch::locks::beside(&flowcc, &locks).unwrap();
        let fits = |reads| {
            let relay = Relay::new(64, Some(config::Steering { reads, ..STEERS }), Mtu::B4096);
            switch::locks::beside(&both, &relay.program.unwrap().stage_map()).is_ok()
        };
        assert_eq!([false, true].map(fits), [true, false]);
    }

    /// A client of node 0 begins a connection to a store at node 2, of whose third life it is.
    fn begins(thread: u16, region: u32, number: u64) -> Introduction {
        Introduction::Begin {
            client: ChainPair::of_client(NodeId(0), NodeId(2), thread).number(),
            first: Psn::new(9),
            region: Key(region),
            of: 3,
            life: Incarnation(1),
            server: SERVER,
            as_asked: false,
            number,
        }
    }

    /// The key of the memory of the store that is steered.
    fn steered(relay: &Relay) -> Option<Key> {
        relay.steered.map(|store| store.id.2)
    }

    fn say(relay: &mut Relay, said: Introduction) {
        let heard = relay.on_introduction(Nanos::ZERO, PlaceId::node(NodeId(0)), &said);
        assert_eq!(heard, Some(Introduction::Heard { number: said.number() }), "whatever becomes of it");
    }

    #[test]
    fn one_store_is_steered_and_the_next_one_when_it_is_over() {
        let mut relay = Relay::new(3, Some(STEERS), Mtu::B4096);
        let over = |region, number| {
            let (memory, region) = (NodeId(2), Key(region));
            Introduction::Over { memory, of: 3, region, number }
        };
        for said in [begins(1, 7, 1), begins(2, 8, 2), over(8, 3), begins(3, 8, 4)] {
            say(&mut relay, said);
        }
        assert_eq!(steered(&relay), Some(Key(7)));
        say(&mut relay, over(7, 5));
        say(&mut relay, begins(4, 8, 6));
        assert_eq!(steered(&relay), Some(Key(8)));
        assert_eq!(relay.known.len(), 3, "those of the other store are over");
    }

    #[test]
    fn a_store_is_over_when_its_memory_or_its_metadata_server_has_died_and_another_one_is_steered() {
        let up = [1, SERVER.1.0, 3];
        // The memory; the metadata server; either, which is there again in its next life, in one step.
        for dead in [[1, 5, 0], [1, 0, 3], [1, 5, 9], [1, 9, 3]] {
            let mut relay = Relay::new(3, Some(STEERS), Mtu::B4096);
            relay.begin_epoch(&lives_of(up));
            say(&mut relay, begins(1, 7, 1));
            relay.begin_epoch(&lives_of([2, 5, 3]));
            assert_eq!((steered(&relay), relay.known.len()), (Some(Key(7)), 1), "somebody else has died");
            relay.begin_epoch(&lives_of(dead));
            assert_eq!((steered(&relay), relay.known.len()), (None, 0), "{dead:?}");
            // A client that has not heard of it yet, or that goes on without a metadata server.
            say(&mut relay, begins(1, 7, 2));
            assert_eq!(steered(&relay), None, "{dead:?}");
            relay.begin_epoch(&lives_of([1, 9, 9]));
            say(&mut relay, begins(1, 7, 3));
            assert_eq!(steered(&relay), None, "also when the node is there again");
            let server = (NodeId(1), Incarnation(9));
            let Introduction::Begin { client, first, life, .. } = begins(2, 8, 4) else { unreachable!() };
            let (of, region, as_asked, number) = (9, Key(8), false, 4);
            say(
                &mut relay,
                Introduction::Begin { client, first, region, of, life, server, as_asked, number },
            );
            assert_eq!(steered(&relay), Some(Key(8)), "another store");
        }
    }
}
