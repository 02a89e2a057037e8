//! The responder event by event: requests from the past, in order, from the future, and again. What must hold: each is
//! executed in its turn and once, and what must not be taken is dropped and counted.

use crate::lone;

use lone::*;
use nic::verbs::*;
use wire::roce::*;
use wire::{Nanos, NodeId};

#[test]
fn a_write_is_placed_and_acknowledged() {
    let mut lone = plain();
    let effects = lone.write_only(0, 8);
    assert_eq!(placed(&effects), [lone.span(8)]);
    assert_eq!(sent(&effects), [(Opcode::Acknowledge, 0)]);
    assert!(matches!(effects[0], Effect::Place { .. }), "first the bytes, then the acknowledgement");
}

#[test]
fn a_write_that_comes_again_is_acknowledged_and_not_placed() {
    let mut lone = plain();
    lone.write_only(0, 8);
    lone.write_only(1, 8);
    let effects = lone.write_only(0, 8);
    assert_eq!(sent(&effects), [(Opcode::Acknowledge, 1)], "how far it has come");
    assert!(placed(&effects).is_empty());
    assert_eq!(lone.device.counters().duplicates, 1);
}

#[test]
fn a_gap_is_reported_once() {
    let mut lone = plain();
    let effects = lone.write_only(2, 8);
    assert_eq!((sent(&effects), syndromes(&effects)), (vec![(Opcode::Acknowledge, 0)], vec![NAK]));
    assert!(lone.write_only(1, 8).is_empty(), "it has been reported");
    assert_eq!(lone.dropped(Drop::OutOfOrder), 2);
    lone.write_only(0, 8);
    assert_eq!(syndromes(&lone.write_only(2, 8)), [NAK], "another gap");
}

#[test]
fn half_the_circle_is_the_past_and_the_other_half_the_future() {
    let mut lone = plain();
    assert_eq!(syndromes(&lone.write_only((1 << 23) - 1, 8)), [NAK]);
    let mut lone = plain();
    assert_eq!(sent(&lone.write_only(-(1 << 23), 8)), [(Opcode::Acknowledge, -1)]);
}

#[test]
fn wishes_for_an_acknowledgement_are_answered_together() {
    let mut lone = lone(|receive| (receive.ack_every, receive.ack_delay) = (3, Nanos(500)), |_| {});
    assert!(sent(&lone.write_only(0, 8)).is_empty());
    assert_eq!(lone.device.next_deadline(), Nanos(501));
    assert!(sent(&lone.write_only(1, 8)).is_empty());
    assert_eq!(sent(&lone.write_only(2, 8)), [(Opcode::Acknowledge, 2)], "three at once");
    assert!(lone.nothing_is_due());
    lone.write_only(3, 8);
    assert!(lone.deadline(Nanos(1000)).is_empty(), "early is harmless");
    assert_eq!(sent(&lone.deadline(Nanos(1001))), [(Opcode::Acknowledge, 3)], "or when their time has come");
    lone.write_only(4, 8);
    assert_eq!(sent(&lone.add(5, 1)), [(Opcode::AtomicAcknowledge, 5)], "any answer acknowledges");
    assert!(lone.nothing_is_due());
}

#[test]
fn a_long_write_is_placed_piece_by_piece() {
    let mut lone = plain();
    let reth = Extension::Reth(lone.reth(BASE + 8, 600));
    let mut spans = placed(&lone.feed(Opcode::WriteFirst, 0, reth, 256));
    spans.extend(placed(&lone.feed(Opcode::WriteMiddle, 1, Extension::Plain, 256)));
    spans.extend(placed(&lone.feed(Opcode::WriteLast, 2, Extension::Plain, 88)));
    let places: Vec<_> = spans.iter().map(|span| (span.address - BASE, span.len)).collect();
    assert_eq!(places, [(8, 256), (264, 256), (520, 88)]);
}

#[test]
fn a_message_that_is_not_as_announced_is_an_invalid_request() {
    use Extension::Plain;
    fn reth(lone: &Lone, length: u32) -> Extension {
        Extension::Reth(lone.reth(BASE, length))
    }
    type Feed = fn(&mut Lone) -> Vec<Effect>;
    let cases: [(&str, Feed); 11] = [
        ("an only one of another length", |l| l.feed(Opcode::WriteOnly, 0, reth(l, 9), 8)),
        ("longer than a packet", |l| l.feed(Opcode::WriteOnly, 0, reth(l, 257), 257)),
        ("a first one that is not full", |l| l.feed(Opcode::WriteFirst, 0, reth(l, 600), 255)),
        ("a first one with nothing to follow", |l| l.feed(Opcode::WriteFirst, 0, reth(l, 256), 256)),
        ("a middle without a first", |l| l.feed(Opcode::WriteMiddle, 0, Plain, 256)),
        ("a last without a first", |l| l.feed(Opcode::SendLast, 0, Plain, 8)),
        ("a message inside of another", |l| {
            l.feed(Opcode::WriteFirst, 0, reth(l, 600), 256);
            l.feed(Opcode::WriteOnly, 1, reth(l, 8), 8)
        }),
        ("a READ inside of a message", |l| {
            l.feed(Opcode::WriteFirst, 0, reth(l, 600), 256);
            l.feed(Opcode::ReadRequest, 1, reth(l, 8), 0)
        }),
        ("a WRITE that goes on as a SEND", |l| {
            l.feed(Opcode::WriteFirst, 0, reth(l, 600), 256);
            l.feed(Opcode::SendMiddle, 1, Plain, 256)
        }),
        ("a last that comes too early", |l| {
            l.feed(Opcode::WriteFirst, 0, reth(l, 600), 256);
            l.feed(Opcode::WriteLast, 1, Plain, 88)
        }),
        ("longer than the longest", |l| l.feed(Opcode::ReadRequest, 0, reth(l, (1 << 20) + 1), 0)),
    ];
    for (what, feed) in cases {
        let mut lone = plain();
        let effects = feed(&mut lone);
        assert_eq!(syndromes(&effects), [Syndrome::Nak(NakCode::InvalidRequest)], "{what}");
        assert!(placed(&effects).is_empty(), "{what}");
        assert_eq!(lone.device.state(lone.pair), Some(QueuePairState::Err), "{what}");
    }
}

#[test]
fn a_long_read_is_answered_in_segments() {
    let mut lone = plain();
    let reth = Extension::Reth(lone.reth(BASE + 1, 600));
    let effects = lone.feed(Opcode::ReadRequest, 0, reth, 0);
    let opcodes =
        [(Opcode::ReadResponseFirst, 0), (Opcode::ReadResponseMiddle, 1), (Opcode::ReadResponseLast, 2)];
    assert_eq!(sent(&effects), opcodes);
    assert_eq!(sent(&lone.write_only(3, 8)), [(Opcode::Acknowledge, 3)], "each segment took a number");
}

#[test]
fn a_read_of_nothing_needs_no_key() {
    let mut lone = plain();
    let reth = Extension::Reth(Reth { address: 5, key: Key(0), length: 0 });
    let effects = lone.feed(Opcode::ReadRequest, 0, reth, 0);
    assert!(matches!(
        effects[..],
        [Effect::Send { packet: Packet { opcode: Opcode::ReadResponseOnly, .. }, payload: None, .. }]
    ));
}

#[test]
fn a_read_that_comes_again_is_answered_from_any_segment_on() {
    let mut lone = plain();
    let reth = Extension::Reth(lone.reth(BASE, 600));
    lone.feed(Opcode::ReadRequest, 0, reth, 0);
    let rest = Extension::Reth(lone.reth(BASE + 256, 344));
    let again = lone.feed(Opcode::ReadRequest, 1, rest, 0);
    assert_eq!(sent(&again), [(Opcode::ReadResponseFirst, 1), (Opcode::ReadResponseLast, 2)]);
    // More than was asked for before: numbers that have not been used.
    assert!(lone.feed(Opcode::ReadRequest, 1, reth, 0).is_empty());
    assert_eq!(lone.dropped(Drop::NotRemembered), 1);
}

#[test]
fn a_read_that_comes_again_after_its_region_is_gone_is_dropped() {
    let mut lone = plain();
    let reth = Extension::Reth(lone.reth(BASE, 8));
    lone.feed(Opcode::ReadRequest, 0, reth, 0);
    lone.device.deregister(lone.key).unwrap();
    assert!(lone.feed(Opcode::ReadRequest, 0, reth, 0).is_empty());
    assert_eq!(lone.device.state(lone.pair), Some(QueuePairState::Rts));
}

#[test]
fn an_atomic_that_comes_again_gets_the_same_answer_again() {
    let mut lone = lone(|receive| receive.remembered = 2, |_| {});
    lone.add(0, 5);
    lone.add(1, 7);
    assert_eq!(originals(&lone.add(0, 5)), [0]);
    assert_eq!(originals(&lone.add(1, 7)), [5]);
    assert_eq!(lone.memory.word(lone.key, BASE), 12, "executed once");
    lone.add(2, 1);
    assert!(lone.add(0, 5).is_empty(), "forgotten: more have come since than may be unanswered");
    assert_eq!((lone.dropped(Drop::NotRemembered), lone.memory.word(lone.key, BASE)), (1, 13));
}

#[test]
fn compare_swap_answers_what_was_there_and_swaps_if_it_is_equal() {
    let mut lone = plain();
    lone.memory.set_word(lone.key, BASE, 4);
    for (offset, compare, swap, original, after) in [(0, 3, 9, 4, 4), (1, 4, 9, 4, 9)] {
        let word = AtomicEth { address: BASE, key: lone.key, swap_or_add: swap, compare };
        let effects = lone.feed(Opcode::CompareSwap, offset, Extension::Atomic(word), 0);
        let Effect::Send { packet, .. } = effects[0] else { panic!("an answer: {effects:?}") };
        assert!(matches!(packet.extension, Extension::AethAtomic(_, answer) if answer == original));
        assert_eq!(lone.memory.word(lone.key, BASE), after);
    }
}

#[test]
fn after_a_refused_message_everything_waits_for_it_silently() {
    let mut lone = plain();
    let effects = lone.feed(Opcode::SendOnly, 0, Extension::Plain, 8);
    assert_eq!(syndromes(&effects), [Syndrome::RnrNak(RnrTimer::from_code(1))]);
    assert!(lone.write_only(1, 8).is_empty());
    let receive = Receive { id: WorkId(1), local: lone.span(8) };
    lone.device.post_receive(lone.now, lone.pair, receive, &mut Vec::new()).unwrap();
    assert_eq!(sent(&lone.feed(Opcode::SendOnly, 0, Extension::Plain, 8)), [(Opcode::Acknowledge, 0)]);
    assert_eq!(sent(&lone.write_only(1, 8)), [(Opcode::Acknowledge, 1)]);
}

#[test]
fn what_is_for_nobody_is_counted_by_cause() {
    let mut lone = plain();
    let write = lone.packet(Opcode::WriteOnly, 0, Extension::Reth(lone.reth(BASE, 8)));
    lone.feed_packet(&Packet { to: QpNumber::new(1), ..write }, 8);
    lone.feed_packet(&Packet { to: QpNumber::new(3), ..write }, 8);
    let mut out = Vec::new();
    lone.device.on_packet(lone.now, NodeId(2), &write, 8, &mut lone.memory, &mut out);
    lone.device.on_malformed(Malformed::Icrc);
    assert!(out.is_empty());
    let counts = [Drop::NoSuchQueuePair, Drop::UnknownPeer].map(|why| lone.dropped(why));
    assert_eq!(counts, [2, 1]);
    assert_eq!(lone.device.counters().malformed[Malformed::Icrc as usize], 1);
    assert_eq!((lone.device.counters().received, lone.device.counters().taken), (4, 0));
}
