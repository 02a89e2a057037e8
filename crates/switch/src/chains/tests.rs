use wire::chains::{Class, EntryHead, EntryKind, EntryVersion, Location, Next, Word};
use wire::roce::{Aeth, AtomicEth, Extension, Key, Opcode, Packet, Psn, QpNumber, Reth, Syndrome};
use wire::{Nanos, NodeId};

use super::{Binding, Bound, Connection, Counters, End, Steering, SteeringConfig};

#[test]
fn every_pass_by_its_plan_does_what_the_program_does() {
    let counters = random_packets(Binding::NONE);
    let all = [counters.steered, counters.repeated, counters.appended, counters.refused, counters.tails];
    assert!(all.iter().all(|count| *count > 10), "{counters:?}");
}

#[test]
fn and_so_where_words_are_bound() {
    let binding = Binding { queue_pairs: 2, window: 8, atomics: 4, writes: true };
    let counters = random_packets(binding);
    let all = [counters.bound, counters.written, counters.repeated, counters.appended, counters.refused];
    assert!(all.iter().all(|count| *count > 10), "{counters:?}");
}

/// Random packets of two connections, over a few slots and keys: each pass is compared with the program as it was written, in `pass`.
fn random_packets(binding: Binding) -> Counters {
    let config = SteeringConfig {
        keys: 4,
        connections: 2,
        window: 4,
        slots: 256,
        binding,
        ..SteeringConfig::default()
    };
    let mut steering = Steering::new(&config).unwrap();
    let end = |node, queue_pair| End { node: NodeId(node), queue_pair: QpNumber::new(queue_pair) };
    let ends = [1, 2].map(|client| (end(client, 5), end(0, 10 + u32::from(client))));
    let (region, base, first_psn) = (Key(9), 4096, Psn::new(0));
    for at in 0..binding.queue_pairs {
        let number = 30 + at as u32;
        let (switch, memory) = (end(7, number), end(0, number));
        steering.bind(at, Bound { switch, memory, first_psn, region, base });
    }
    for (client, memory) in ends {
        assert!(steering.connect(Connection { client, memory, first_psn, region, base }));
    }
    let mut state = 1_u64;
    let mut below = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut next = [0_u32; 2];
    for _ in 0..60_000 {
        let at = below(2) as usize;
        let (client, memory) = ends[at];
        let psn = match below(4) {
            0 => next[at].saturating_sub(below(6) as u32),
            _ => next[at],
        };
        next[at] = next[at].max(psn + 1);
        let location = Location::new(Class::new(0).unwrap(), 1 + below(3) as u32);
        let other = Location::new(Class::new(0).unwrap(), 1 + below(3) as u32);
        let (tail, version) = (Word::tail(EntryVersion(below(2) as u8)), EntryVersion(below(2) as u8));
        let new = tail.followed_by(Next::Entry(other, version));
        let psn = Psn::new(psn);
        let head = EntryHead { word: tail, key: below(5), at: location, len: 8, kind: EntryKind::Value };
        let head: [[u8; 8]; 3] = head.to_words().map(u64::to_le_bytes);
        // What the switch has sent is answered now and then.
        while let Some(sent) = steering.next_sent() {
            let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 };
            let is_answered = below(8) > 0;
            let (opcode, extension) = match sent.packet.extension {
                Extension::Atomic(atomic) => {
                    let found = if below(4) == 0 { atomic.swap_or_add } else { atomic.compare };
                    (Opcode::AtomicAcknowledge, Extension::AethAtomic(aeth, found))
                }
                Extension::Reth(_) => (Opcode::Acknowledge, Extension::Aeth(aeth)),
                _ => continue,
            };
            if is_answered {
                let mut answer = Packet::new(opcode, sent.packet.to, sent.packet.psn, extension);
                _ = steering.on_packet(Nanos(1), NodeId(7), &mut answer, &[]);
            }
        }
        let (to, mut packet) = match below(if binding.queue_pairs > 0 { 4 } else { 3 }) {
            0 => {
                let reth = Reth { address: base + location.offset(), key: region, length: 64 };
                (memory, Packet::new(Opcode::WriteOnly, memory.queue_pair, psn, Extension::Reth(reth)))
            }
            1 => {
                let (compare, swap_or_add) = (tail.to_bits(), new.to_bits());
                let word = AtomicEth { address: base + location.offset(), key: region, compare, swap_or_add };
                (memory, Packet::new(Opcode::CompareSwap, memory.queue_pair, psn, Extension::Atomic(word)))
            }
            3 => {
                let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 };
                let psn = Psn::new(next[at].saturating_sub(1 + below(2) as u32));
                let (opcode, extension) = (Opcode::ReadResponseOnly, Extension::Aeth(aeth));
                (client, Packet::new(opcode, client.queue_pair, psn, extension))
            }
            _ => {
                let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 };
                let word = if below(3) == 0 { new } else { tail };
                let extension = Extension::AethAtomic(aeth, word.to_bits());
                // Of one of the last packets.
                let psn = Psn::new(next[at].saturating_sub(1 + below(4) as u32));
                (client, Packet::new(Opcode::AtomicAcknowledge, client.queue_pair, psn, extension))
            }
        };
        let head = if packet.opcode.is_response() { &[][..] } else { head.as_flattened() };
        _ = steering.on_packet(Nanos(1), to.node, &mut packet, head);
    }
    *steering.counters()
}

#[test]
fn a_tail_that_was_told_leaves_with_its_key_and_is_not_that_of_the_next_one() {
    let mut steering = Steering::new(&SteeringConfig { keys: 1, ..SteeringConfig::default() }).unwrap();
    let at = Location::new(Class::new(0).unwrap(), 7);
    // Each way has one cell.
    assert!(steering.preload(9, at, EntryVersion(3)));
    assert_eq!(steering.tail(9), Some((at, EntryVersion(3))));
    steering.evict(9);
    for key in 10..13 {
        assert!(steering.admit(key));
        assert_eq!(steering.tail(key), None, "{key}");
    }
}
