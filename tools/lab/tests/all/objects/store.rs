//! Histories of the object store are linearizable, with both layouts, over every kind of rack.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use apps::objects::{ObjectStore, ObjectStoreConfig, Sabres, Versioned};
use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use lab::objects::{Checksum, Lines};
use rackmem::{GlobalAddr, Nanos, NodeHandle};
use random::Random;

use crate::objects::Racks;

const CLIENTS: u16 = 6;
const KEYS: u64 = 7;
/// Few slots: keys come and go in further buckets all the time.
const CONFIG: ObjectStoreConfig =
    ObjectStoreConfig { expected_keys: 3, key_bytes: 8, value_bytes: 200, slots: 1, homes: None, salt: 5 };

/// A value that is like no other, of one length or another, the same in each of its parts.
fn value(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + (number % 25) as usize)
}

fn digest(value: &[u8]) -> u64 {
    let (words, _) = value.as_chunks::<8>();
    assert!(words.iter().all(|word| *word == words[0]), "a torn value: {value:?}");
    u64::from_le_bytes(words[0])
}

fn client<L: Versioned>(
    node: &mut NodeHandle,
    root: GlobalAddr,
    client: u16,
    operations: u64,
    clock: &AtomicU64,
) -> Vec<Operation<u64>> {
    let mut store = ObjectStore::<L>::open(node, root).unwrap();
    let (mut dice, mut seen, mut calls) = (Random::new(client.into()), Vec::new(), Vec::new());
    for number in 1..=operations {
        let key = dice.below(KEYS);
        let name = key.to_le_bytes();
        let new = u64::from(client) * 1_000_000 + number;
        let invoke = Nanos(clock.fetch_add(1, SeqCst));
        let op = match dice.below(10) {
            0..4 => Op::Read { value: store.get(node, &name, &mut seen).unwrap().then(|| digest(&seen)) },
            4..7 => {
                store.put(node, &name, &value(new)).unwrap();
                Op::Insert { value: new }
            }
            7 => {
                store.delete(node, &name).unwrap();
                Op::Delete
            }
            _ => {
                let mut before = None;
                let swap = |room: &mut Vec<u8>| {
                    before = Some(digest(room));
                    *room = value(new);
                };
                match store.update(node, &name, &mut seen, swap).unwrap() {
                    true => Op::Rmw { value: before, new },
                    false => Op::Read { value: None },
                }
            }
        };
        let ret = Some(Nanos(clock.fetch_add(1, SeqCst)));
        calls.push(Operation { client: client.into(), key, op, invoke, ret });
    }
    calls
}

fn histories_are_linearizable<L: Versioned>(racks: &Racks, operations: u64) {
    let root = ObjectStore::<L>::create(&mut racks.node(0), &CONFIG).unwrap().root();
    let clock = AtomicU64::new(0);
    let history: Vec<_> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (mut node, clock) = (racks.node(number % 3), &clock);
                scope.spawn(move || client::<L>(&mut node, root, number, operations, clock))
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    match check_history(&history, Limits::default()) {
        Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
        Verdict::Violation(violation) => panic!("{violation}"),
        Verdict::Unknown { why } => panic!("{why}"),
    }
}

macro_rules! on {
    ($($rack:ident: $operations:literal,)*) => {$(
        mod $rack {
            use super::*;

            #[test]
            fn the_store_on_objects_of_the_rack_is_linearizable() {
                histories_are_linearizable::<Sabres>(&Racks::$rack(), $operations);
            }

            #[test]
            fn the_store_on_versions_in_lines_is_linearizable() {
                histories_are_linearizable::<Lines>(&Racks::$rack(), $operations);
            }
        }
    )*};
}

on! {
    inline: 1500,
    shared_memory: 1500,
    udp: 150,
    bad_network: 100,
}

#[test]
fn the_store_is_linearizable_on_checksums_too() {
    histories_are_linearizable::<Checksum>(&Racks::inline(), 1000);
}
