//! What the switch does with packets between clients of chains and memory: it carries them on, and where it steers it lets its program
//! see each of them first.
//!
//! In the switch's process, or in an embedded rack under a lock. What must always hold: a packet comes from the node that has the
//! other end of the queue pair that it is for, or it goes nowhere; the program knows of a connection before its first packet.

use std::collections::BTreeMap;

use nic::verbs::Mtu;
use switch::steering::{self, Action, Connection, End, Steering};
use transport::{Contents, PlaceId};
use wire::chain_pair::{self, ChainPair};
use wire::roce::{Key, Packet, Psn, QpNumber};
use wire::{Incarnation, Nanos, NodeId};

use super::introduction::Introduction;
use super::times::{LIFETIME, SLOT_LIFETIMES};
use crate::config;

/// Keys that the program has room for.
const KEYS: usize = 100_000;
/// Connections that it steers; what others send passes as it is. Each takes a record for each number that is remembered, and there is room
/// for 16 Ki of them beside the other programs.
const CONNECTIONS: usize = 128;
/// Packet numbers of a connection that the program remembers: far more than a requester has under way, because others' appends may wait
/// for the acknowledgement of one of them, and are in doubt if it is forgotten.
const WINDOW: u32 = 128;
/// Cells for entries that were written: for reads it is the longer of use whose entry a slot has the more there are, and this many
/// fit beside the other programs.
const SLOTS: usize = 1 << 16;
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
}

/// The switch's part in chains.
#[derive(Debug)]
pub(crate) struct Relay {
    nodes: usize,
    carried: u64,
    program: Option<Box<Steering>>,
    /// Connections that the program was told of, by the client's queue pair: the client's life, and the introduction's number.
    known: BTreeMap<QpNumber, (Incarnation, u64)>,
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
            slots: SLOTS,
            // Of two packets, one could come from another entry.
            reads: if how.reads { mtu.bytes() } else { 0 },
            lifetime: LIFETIME,
            slot_lifetimes: SLOT_LIFETIMES,
            ..steering::Config::default()
        };
        let program = steering.map(|how| Steering::new(&config(how)).expect("the program fits the chip"));
        Self { nodes, carried: 0, program: program.map(Box::new), known: BTreeMap::new() }
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
                ..counts
            };
        }
        counts
    }

    /// A packet with so many bytes of payload; `send` sends it on. False if it may not be.
    pub(crate) fn on_packet(
        &mut self,
        now: Nanos,
        from: PlaceId,
        (packet, len, contents): (&Packet, usize, Contents<'_>),
        send: impl FnOnce(NodeId, &Packet, usize, Contents<'_>),
    ) -> bool {
        let pair = ChainPair::of(packet.to).filter(|pair| from.as_node() == Some(pair.peer));
        let Some(pair) = pair.filter(|pair| pair.owner.index() < self.nodes) else { return false };
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
        if program.on_packet(now, pair.owner, &mut packet, head) == Action::Forward {
            send(pair.owner, &packet, len, contents);
        }
        true
    }

    /// A connection begins, as its client says. False if something newer is known of it.
    pub(crate) fn begin(
        &mut self,
        client: ChainPair,
        (first_psn, region, as_asked): (Psn, Key, bool),
        life: Incarnation,
        number: u64,
    ) -> bool {
        let last = self.known.get(&client.number()).copied();
        if last.is_some_and(|(_, last)| number <= last) {
            return last.is_some_and(|(_, last)| number == last);
        }
        self.known.insert(client.number(), (life, number));
        if let Some(program) = &mut self.program {
            let end = |pair: ChainPair| End { node: pair.owner, queue_pair: pair.number() };
            let (client, memory) = (end(client), end(client.other()));
            // The address of a unit is its number, times its bytes. If there are too many connections, this one passes as it is.
            program.connect(Connection { client, memory, first_psn, region, base: 0 });
            if as_asked {
                program.read_as_asked(client);
            }
        }
        true
    }

    /// All connections of that life of a node, or a former one, are over.
    fn end(&mut self, node: NodeId, life: Incarnation) {
        let its = |(number, (of, _)): (&QpNumber, &(Incarnation, u64))| {
            let pair = ChainPair::of(*number).expect("a client's queue pair");
            (pair.owner == node && *of <= life).then_some(*number)
        };
        let its: Vec<QpNumber> = self.known.iter().filter_map(its).collect();
        for queue_pair in its {
            self.known.remove(&queue_pair);
            if let Some(program) = &mut self.program {
                program.disconnect(End { node, queue_pair });
            }
        }
    }

    /// What a node says of connections; what it is answered.
    pub(crate) fn on_introduction(&mut self, from: PlaceId, said: &Introduction) -> Option<Introduction> {
        match *said {
            Introduction::Begin { client, first, region, life, as_asked, number } => {
                let is_client = |pair: &ChainPair| pair.end == chain_pair::End::Client;
                let pair = ChainPair::of(client).filter(is_client);
                let pair = pair.filter(|pair| from.as_node() == Some(pair.owner))?;
                let heard = self.begin(pair, (first, region, as_asked), life, number);
                heard.then_some(Introduction::Heard { number })
            }
            Introduction::End { node, life, number } => {
                from.as_node()?;
                self.end(node, life);
                Some(Introduction::Heard { number })
            }
            Introduction::Heard { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::roce::{Extension, Opcode};

    const STEERS: config::Steering = config::Steering { keys: 8, reads: true, preload: false };

    fn pair(client: u16, memory: u16) -> ChainPair {
        ChainPair::of_client(NodeId(client), NodeId(memory), 5)
    }

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
    fn what_is_said_late_of_a_connection_means_nothing() {
        let mut relay = Relay::new(3, Some(STEERS), Mtu::B4096);
        let node = |node| PlaceId::node(NodeId(node));
        let begin = |number, life| Introduction::Begin {
            client: pair(0, 2).number(),
            first: Psn::new(9),
            region: Key(1),
            life: Incarnation(life),
            as_asked: false,
            number,
        };
        let heard = |number| Some(Introduction::Heard { number });
        assert_eq!(relay.on_introduction(node(0), &begin(5, 1)), heard(5));
        assert_eq!(relay.on_introduction(node(0), &begin(5, 1)), heard(5), "repeated");
        assert_eq!(relay.on_introduction(node(0), &begin(4, 1)), None, "late");
        assert_eq!(relay.on_introduction(node(1), &begin(6, 1)), None, "of somebody else");
        assert_eq!(relay.on_introduction(node(0), &begin(7, 2)), heard(7));
        let end = |life| Introduction::End { node: NodeId(0), life: Incarnation(life), number: 1 };
        assert_eq!(relay.on_introduction(node(1), &end(1)), heard(1));
        assert_eq!(relay.known.len(), 1, "the next life has begun");
        assert_eq!(relay.on_introduction(node(1), &end(2)), heard(1));
        assert!(relay.known.is_empty());
    }
}
