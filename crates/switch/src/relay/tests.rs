//! Connections, lives and stores, as the switch is told of them.

use super::*;
use crate::chains::SteeringConfig;
use wire::chains::{Class, EntryVersion, Location};
use wire::roce::{Extension, Opcode};

/// How long a tail counts that was found.
const FOUND: Nanos = Nanos::from_millis(1000);

/// The first epoch of the switch here.
const EPOCH: SwitchEpoch = SwitchEpoch(7);

/// Of three nodes, with a program.
fn steers() -> Relay {
    let config = SteeringConfig { keys: 8, reads: 4096, ..SteeringConfig::default() };
    let mut relay = Relay::new(3, Some(Steering::new(&config).expect("it fits")), FOUND);
    relay.begin_epoch(EPOCH, &incarnations_of([1, SERVER.1.0, 3]));
    relay
}

fn pair(client: u16, memory: u16) -> ChainPair {
    ChainPair::of_client(NodeId(client), NodeId(memory), 5)
}

/// Of three nodes; 0: it is dead.
fn incarnations_of(incarnations: [u32; 3]) -> [Option<Incarnation>; 3] {
    incarnations.map(|incarnation| (incarnation != 0).then_some(Incarnation(incarnation)))
}

/// The metadata server of the stores here is that of node 1, in this incarnation of it.
const SERVER: (NodeId, Incarnation) = (NodeId(1), Incarnation(5));

#[test]
fn a_packet_goes_to_the_owner_of_its_queue_pair_if_it_is_from_the_other_end() {
    let mut relay = Relay::new(3, None, FOUND);
    let mut forwarded = |from: u16, number| {
        let mut packet = Packet::new(Opcode::Acknowledge, number, Psn::new(1), Extension::Plain);
        relay.on_packet(Nanos::ZERO, NodeId(from), &mut packet, &[]).map(|(to, _)| to)
    };
    assert_eq!(forwarded(0, pair(0, 2).other().number()), Some(NodeId(2)));
    assert_eq!(forwarded(2, pair(0, 2).number()), Some(NodeId(0)));
    assert_eq!(forwarded(1, pair(1, 1).other().number()), Some(NodeId(1)), "to memory of its own");
    assert_eq!(forwarded(1, pair(0, 2).other().number()), None, "of somebody else");
    assert_eq!(forwarded(0, pair(0, 3).other().number()), None, "to nowhere");
    assert_eq!(forwarded(0, QpNumber::new(2)), None, "about something else");
}

#[test]
fn nothing_passes_of_a_node_that_was_declared_dead() {
    let mut relay = Relay::new(3, None, FOUND);
    let passes = |relay: &mut Relay, from: u16, number| {
        let mut packet = Packet::new(Opcode::Acknowledge, number, Psn::new(1), Extension::Plain);
        relay.on_packet(Nanos::ZERO, NodeId(from), &mut packet, &[]).is_some()
    };
    let (request, answer) = (pair(0, 2).other().number(), pair(0, 2).number());
    for (incarnations, is_passed) in [([1, 1, 1], true), ([1, 1, 0], false), ([1, 1, 3], true)] {
        relay.begin_epoch(EPOCH, &incarnations_of(incarnations));
        assert_eq!(passes(&mut relay, 2, answer), is_passed, "{incarnations:?}");
        assert!(passes(&mut relay, 0, request), "it may be told");
    }
}

#[test]
fn what_is_said_late_of_a_connection_means_nothing() {
    let mut relay = steers();
    let node = NodeId;
    let begin = |number, incarnation| Introduction::Begin {
        client: pair(0, 2).number(),
        first: Psn::new(9),
        region: Key(1),
        of: 3,
        incarnation: Incarnation(incarnation),
        server: SERVER,
        switch: EPOCH,
        as_asked: false,
        number,
    };
    let heard = |number| Some(Introduction::Heard { number });
    assert_eq!(relay.on_introduction(Nanos::ZERO, node(0), &begin(5, 1)), heard(5));
    assert_eq!(relay.on_introduction(Nanos::ZERO, node(0), &begin(5, 1)), heard(5), "repeated");
    assert_eq!(relay.on_introduction(Nanos::ZERO, node(0), &begin(4, 1)), None, "late");
    assert_eq!(relay.on_introduction(Nanos::ZERO, node(1), &begin(6, 1)), None, "of somebody else");
    assert_eq!(relay.on_introduction(Nanos::ZERO, node(0), &begin(7, 2)), heard(7));
    let end =
        |incarnation| Introduction::End { node: NodeId(0), incarnation: Incarnation(incarnation), number: 1 };
    assert_eq!(relay.on_introduction(Nanos::ZERO, node(1), &end(1)), heard(1));
    assert_eq!(relay.known.len(), 1, "the next incarnation has begun");
    assert_eq!(relay.on_introduction(Nanos::ZERO, node(1), &end(2)), heard(1));
    assert!(relay.known.is_empty());
}

/// Node 0 begins to look for the tails of the store with the memory 1.
fn scan(switch: SwitchEpoch, number: u64) -> Introduction {
    Introduction::Scan { memory: NodeId(2), of: 3, region: Key(1), switch, number }
}

/// Whether the first append of a connection is steered, to the tail that the switch was told of a moment or so long after it was looked for.
fn is_preloaded(found_after: Nanos) -> bool {
    let mut relay = steers();
    let (node, number) = (NodeId(0), 5);
    say(&mut relay, begins(5, 1, 4));
    relay.on_introduction(Nanos(1), node, &scan(EPOCH, number));
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

/// A client of node 0 begins a connection to a store at node 2, of whose third incarnation it is.
fn begins(thread: u16, region: u32, number: u64) -> Introduction {
    Introduction::Begin {
        client: ChainPair::of_client(NodeId(0), NodeId(2), thread).number(),
        first: Psn::new(9),
        region: Key(region),
        of: 3,
        incarnation: Incarnation(1),
        server: SERVER,
        switch: EPOCH,
        as_asked: false,
        number,
    }
}

/// The key of the memory of the store that is steered.
fn steered(relay: &Relay) -> Option<Key> {
    relay.steered.map(|store| store.id.2)
}

fn say(relay: &mut Relay, said: Introduction) {
    let heard = relay.on_introduction(Nanos::ZERO, NodeId(0), &said);
    assert_eq!(heard, Some(Introduction::Heard { number: said.number() }), "whatever becomes of it");
}

#[test]
fn one_store_is_steered_and_the_next_one_when_it_is_over() {
    let mut relay = steers();
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
    // The memory; the metadata server; either, which is there again in its next incarnation, in one step.
    for dead in [[1, 5, 0], [1, 0, 3], [1, 5, 9], [1, 9, 3]] {
        let mut relay = steers();
        relay.begin_epoch(EPOCH, &incarnations_of(up));
        say(&mut relay, begins(1, 7, 1));
        relay.begin_epoch(EPOCH, &incarnations_of([2, 5, 3]));
        assert_eq!((steered(&relay), relay.known.len()), (Some(Key(7)), 1), "somebody else has died");
        relay.begin_epoch(EPOCH, &incarnations_of(dead));
        assert_eq!((steered(&relay), relay.known.len()), (None, 0), "{dead:?}");
        // A client that has not heard of it yet, or that goes on without a metadata server.
        say(&mut relay, begins(1, 7, 2));
        assert_eq!(steered(&relay), None, "{dead:?}");
        relay.begin_epoch(EPOCH, &incarnations_of([1, 9, 9]));
        say(&mut relay, begins(1, 7, 3));
        assert_eq!(steered(&relay), None, "also when the node is there again");
        let server = (NodeId(1), Incarnation(9));
        let Introduction::Begin { client, first, incarnation, .. } = begins(2, 8, 4) else { unreachable!() };
        let (of, region, as_asked, number) = (9, Key(8), false, 4);
        let switch = EPOCH;
        say(
            &mut relay,
            Introduction::Begin { client, first, region, of, incarnation, server, switch, as_asked, number },
        );
        assert_eq!(steered(&relay), Some(Key(8)), "another store");
    }
}

/// What a node said before it knew of this epoch: that a connection begins, or that it looks for tails.
fn said_in(switch: SwitchEpoch) -> [Introduction; 2] {
    let Introduction::Begin { client, first, region, of, incarnation, server, as_asked, .. } =
        begins(1, 1, 1)
    else {
        unreachable!()
    };
    let begin =
        Introduction::Begin { client, first, region, of, incarnation, server, switch, as_asked, number: 1 };
    [begin, scan(switch, 2)]
}

#[test]
fn what_was_said_to_an_earlier_switch_means_nothing_unless_it_is_so_for_ever() {
    let tail = Introduction::Tail {
        key: 9,
        at: Location::new(Class::new(0).unwrap(), 7),
        version: EntryVersion(0),
        number: 2,
    };
    let mut relay = steers();
    say(&mut relay, begins(3, 1, 9));
    for said in said_in(SwitchEpoch(EPOCH.0 - 1)) {
        assert_eq!(relay.on_introduction(Nanos::ZERO, NodeId(0), &said), None, "{said:?}");
    }
    assert_eq!(relay.on_introduction(Nanos::ZERO, NodeId(0), &tail), None);
    assert_eq!((relay.known.len(), relay.outdated), (1, 2));
    assert_eq!(relay.program().unwrap().tail(9), None, "nobody looks");
    let (memory, region) = (NodeId(2), Key(1));
    say(&mut relay, Introduction::End { node: NodeId(1), incarnation: Incarnation(5), number: 3 });
    say(&mut relay, Introduction::Over { memory, of: 3, region, number: 4 });
}

#[test]
fn what_was_said_before_a_node_died_counts_with_the_same_switch() {
    let mut relay = steers();
    relay.begin_epoch(SwitchEpoch(EPOCH.0 + 1), &incarnations_of([1, SERVER.1.0, 3]));
    for said in said_in(EPOCH).into_iter().chain(said_in(SwitchEpoch(EPOCH.0 + 1))) {
        say(&mut relay, said);
    }
    assert_eq!((relay.known.len(), relay.scans.len(), relay.outdated), (1, 1, 0));
}

#[test]
fn a_switch_that_is_in_no_epoch_yet_is_not_the_one_that_anybody_means() {
    let config = SteeringConfig { keys: 8, ..SteeringConfig::default() };
    let mut relay: Relay = Relay::new(3, Some(Steering::new(&config).expect("it fits")), FOUND);
    for said in said_in(EPOCH) {
        assert_eq!(relay.on_introduction(Nanos::ZERO, NodeId(0), &said), None, "{said:?}");
    }
    assert_eq!(relay.outdated, 2);
    relay.begin_epoch(EPOCH, &incarnations_of([1, SERVER.1.0, 3]));
    said_in(EPOCH).into_iter().for_each(|said| say(&mut relay, said));
}
