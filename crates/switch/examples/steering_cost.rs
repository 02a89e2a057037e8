//! What the steering program takes for an append, on this machine: `cargo run --release -p rackmem-switch --example steering_cost`.
//!
//! On one processor, without network. An append is three packets that are looked at: a WRITE, a compare-and-swap, and its
//! acknowledgement; each time is that of one packet, passes and rewriting included.

use std::time::Instant;

use switch::chains::{Connection, End, Steering, SteeringConfig};
use wire::chains::{Class, EntryHead, EntryKind, EntryVersion, Location, Next, Word};
use wire::roce::{Aeth, AtomicEth, Extension, Key, Opcode, Packet, Psn, QpNumber, Reth, Syndrome};
use wire::{Nanos, NodeId};

const APPENDS: u32 = 1_000_000;
const KEYS: u32 = 10_000;

fn main() {
    let mut steering = Steering::new(&SteeringConfig::default()).expect("it fits the chip");
    let (client, memory) = (
        End { node: NodeId(1), queue_pair: QpNumber::new(5) },
        End { node: NodeId(0), queue_pair: QpNumber::new(7) },
    );
    let (region, base) = (Key(9), 1 << 30);
    steering.connect(Connection { client, memory, first_psn: Psn::new(0), region, base });
    let mut spent = [0_u128; 3];
    for number in 0..APPENDS {
        let key = u64::from(number.wrapping_mul(2_654_435_761) % KEYS);
        let version = EntryVersion((number / 200_000) as u8);
        let entry = Location::new(Class::new(0).expect("64 bytes"), 1 + number % 200_000);
        let tail = Word::tail(EntryVersion(0));
        let head = EntryHead { word: Word::tail(version), key, at: entry, len: 8, kind: EntryKind::Value };
        let head = head.to_words().map(u64::to_le_bytes);
        let psn = Psn::new(2 * number);
        let reth = Reth { address: base + entry.offset(), key: region, length: 32 };
        let mut write = Packet::new(Opcode::WriteOnly, memory.queue_pair, psn, Extension::Reth(reth));
        let began = Instant::now();
        _ = steering.on_packet(Nanos(1), memory.node, &mut write, head.as_flattened());
        spent[0] += began.elapsed().as_nanos();
        let psn = psn.plus(1);
        let swap = tail.followed_by(Next::Entry(entry, version));
        let (compare, swap_or_add) = (tail.to_bits(), swap.to_bits());
        let word = AtomicEth { address: base + 64, key: region, compare, swap_or_add };
        let mut swap = Packet::new(Opcode::CompareSwap, memory.queue_pair, psn, Extension::Atomic(word));
        let began = Instant::now();
        _ = steering.on_packet(Nanos(1), memory.node, &mut swap, &[]);
        spent[1] += began.elapsed().as_nanos();
        let Extension::Atomic(steered) = swap.extension else { unreachable!("it is what it was") };
        let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 };
        let answer = Extension::AethAtomic(aeth, steered.compare);
        let mut answer = Packet::new(Opcode::AtomicAcknowledge, client.queue_pair, psn, answer);
        let began = Instant::now();
        _ = steering.on_packet(Nanos(1), client.node, &mut answer, &[]);
        spent[2] += began.elapsed().as_nanos();
    }
    let clock = {
        let began = Instant::now();
        (0..APPENDS).for_each(|_| _ = std::hint::black_box(Instant::now().elapsed()));
        began.elapsed().as_nanos() as f64 / f64::from(APPENDS)
    };
    for (what, spent) in ["WRITE", "CmpSwap", "acknowledgement"].into_iter().zip(spent) {
        println!("{what:<16} {:>6.0} ns", spent as f64 / f64::from(APPENDS) - clock / 2.0);
    }
    println!("{:?}", steering.counters());
}
