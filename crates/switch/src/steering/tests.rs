use wire::chain::{Class, EntryHead, EntryKind, EntryVersion, Location, Next, Word};
use wire::roce::{Aeth, AtomicEth, Extension, Key, Opcode, Packet, Psn, QpNumber, Reth, Syndrome};
use wire::{Nanos, NodeId};

use super::{Config, Connection, End, Steering};

/// Random packets of two connections, over a few slots and keys: each pass is compared with the program as it was written, in `pass`.
#[test]
fn every_pass_by_its_plan_does_what_the_program_does() {
    let config = Config { keys: 4, connections: 2, window: 4, slots: 256, ..Config::default() };
    let mut steering = Steering::new(&config).unwrap();
    let end = |node, queue_pair| End { node: NodeId(node), queue_pair: QpNumber::new(queue_pair) };
    let ends = [1, 2].map(|client| (end(client, 5), end(0, 10 + u32::from(client))));
    let (region, base, first_psn) = (Key(9), 4096, Psn::new(0));
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
        let (to, mut packet) = match below(3) {
            0 => {
                let reth = Reth { address: base + location.offset(), key: region, length: 64 };
                (memory, Packet::new(Opcode::WriteOnly, memory.queue_pair, psn, Extension::Reth(reth)))
            }
            1 => {
                let (compare, swap_or_add) = (tail.to_bits(), new.to_bits());
                let word = AtomicEth { address: base + location.offset(), key: region, compare, swap_or_add };
                (memory, Packet::new(Opcode::CompareSwap, memory.queue_pair, psn, Extension::Atomic(word)))
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
        _ = steering.on_packet(Nanos(1), to.node, &mut packet, head.as_flattened());
    }
    let counters = steering.counters();
    let all = [counters.steered, counters.repeated, counters.appended, counters.refused, counters.tails];
    assert!(all.iter().all(|count| *count > 10), "{counters:?}");
}
