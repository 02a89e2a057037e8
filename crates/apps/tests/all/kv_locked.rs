//! The store in regions that locks carry: what its operations do, and that histories of many threads are linearizable.

use crate::support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use apps::kv::Error;
use apps::kv_locked::{LockedStore, LockedStoreConfig};
use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{Nanos, NodeHandle, NodeId, Rack};
use random::Dice;
use support::values::{number, value};

fn rack(nodes: usize) -> Rack {
    // Fewer copies than there are buckets, so that some have to go, and fewer entries in the switch.
    let config = rackmem::Config { nodes, memory: 8 << 20, cache: 1 << 20, ..rackmem::Config::default() };
    Rack::embedded(rackmem::Config { lock_copies: 16 << 10, lock_entries: 16, ..config }).unwrap()
}

/// So few buckets that they go on in further ones.
fn crowded() -> LockedStoreConfig {
    LockedStoreConfig { expected_keys: 8, record_bytes: 40, salt: 7 }
}

#[test]
fn every_operation_answers_as_a_map_does_also_where_buckets_go_on() {
    let rack = rack(3);
    let mut handles: Vec<NodeHandle> = (0..3).map(|node| rack.node(NodeId(node))).collect();
    let store = LockedStore::create(&mut handles[0], &crowded()).unwrap();
    let mut random = Dice::new(5);
    let (mut model, mut seen) = (BTreeMap::<Vec<u8>, Vec<u8>>::new(), Vec::new());
    for step in 0..6000 {
        let handle = &mut handles[random.pick(3)];
        let key = format!("key {}", random.pick(120)).into_bytes();
        let new = vec![step as u8; random.pick(150)];
        match random.pick(6) {
            0 => assert_eq!(store.put(handle, &key, &new).unwrap(), model.insert(key, new).is_some()),
            1 => {
                let absent = !model.contains_key(&key);
                assert_eq!(store.insert(handle, &key, &new).unwrap(), absent);
                model.entry(key).or_insert(new);
            }
            2 if step % 3 == 0 => {
                assert_eq!(store.delete(handle, &key).unwrap(), model.remove(&key).is_some());
            }
            3 => {
                let found = store
                    .read_modify_write(handle, &key, &mut seen, |value| value.extend_from_slice(b"+"))
                    .or_else(|error| match error {
                        Error::ValueTooLong { .. } => Ok(false),
                        other => Err(other),
                    })
                    .unwrap();
                if let Some(value) = model.get_mut(&key).filter(|_| found) {
                    value.push(b'+');
                    assert_eq!(seen, *value);
                }
            }
            4 => {
                let (offset, bytes) = (random.pick(100), [step as u8; 5]);
                let updated = store.update_in_place(handle, &key, offset, &bytes);
                match model.get_mut(&key) {
                    None => assert_eq!(updated, Ok(false)),
                    Some(value) if offset + 5 <= value.len() => {
                        assert_eq!(updated, Ok(true));
                        value[offset..offset + 5].copy_from_slice(&bytes);
                    }
                    Some(value) => {
                        let outside = Error::OutsideValue { offset, len: 5, value: value.len() };
                        assert_eq!(updated, Err(outside));
                    }
                }
            }
            _ => {
                let found = store.get(handle, &key, &mut seen).unwrap();
                assert_eq!(found.then_some(&seen), model.get(&key), "step {step}");
            }
        }
    }
    let same = LockedStore::open(&mut handles[1], store.root()).unwrap();
    for key in (0..120).map(|key| format!("key {key}").into_bytes()) {
        let found = same.get(&mut handles[2], &key, &mut seen).unwrap();
        assert_eq!(found.then_some(&seen), model.get(&key));
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let rack = rack(2);
    let mut here = rack.node(NodeId(0));
    let store = LockedStore::create(&mut here, &crowded()).unwrap();
    store.put(&mut here, b"key", b"value").unwrap();
    let most = crowded().bucket_bytes() - 24 - 3;
    let long = store.put(&mut here, b"key", &vec![1; most + 1]);
    assert_eq!(long, Err(Error::ValueTooLong { len: most + 1, most }));
    let mut seen = Vec::new();
    assert!(store.get(&mut here, b"key", &mut seen).unwrap() && seen == b"value");
    assert_eq!(store.put(&mut here, b"key", &vec![1; most]), Ok(true));
    let len = store.longest_key() + 1;
    let long = store.get(&mut here, &vec![0; len], &mut seen);
    assert_eq!(long, Err(Error::KeyTooLong { len, most: len - 1 }));
    let root = here.alloc(64, NodeId(1), rackmem::Discipline::Coherent).unwrap();
    assert_eq!(LockedStore::open(&mut here, root).err(), Some(Error::NotAStore { root }));
}

#[test]
fn a_store_that_is_destroyed_gives_back_all_of_its_memory() {
    let rack = rack(2);
    let mut here = rack.node(NodeId(0));
    let create = |handle: &mut NodeHandle| {
        let config =
            LockedStoreConfig { expected_keys: 6000, record_bytes: 250, ..LockedStoreConfig::default() };
        LockedStore::create(handle, &config).unwrap()
    };
    // Each takes more than a quarter of the memory.
    for round in 0..6u64 {
        let store = create(&mut here);
        for key in 0..200u64 {
            store.put(&mut here, &key.to_le_bytes(), &[round as u8; 200]).unwrap();
        }
        store.destroy(&mut here).unwrap();
    }
}

const THREADS: u16 = 6;
const OPERATIONS: u16 = 1500;
const KEYS: usize = 5;
const LEN: usize = 20;

/// Values are told apart by thread and operation.
fn digest(value: &[u8]) -> u64 {
    number(value).unwrap_or_else(|| panic!("a torn value: {value:?}")).into()
}

fn client(
    store: &LockedStore,
    here: &mut NodeHandle,
    client: u16,
    clock: &AtomicU64,
) -> Vec<Operation<usize>> {
    let mut random = Dice::new(client.into());
    let mut calls = Vec::new();
    let mut seen = Vec::new();
    for operation in 0..OPERATIONS {
        let key = random.pick(KEYS);
        let name = key.to_le_bytes();
        let len = LEN << random.pick(4);
        let new = value(client * OPERATIONS + operation + 1, len);
        let written = digest(&new);
        let invoke = Nanos(clock.fetch_add(1, SeqCst));
        let op = match random.pick(10) {
            0..3 => {
                let found = store.get(here, &name, &mut seen).unwrap();
                Op::Read { value: found.then(|| digest(&seen)) }
            }
            3..6 => {
                store.put(here, &name, &new).unwrap();
                Op::Insert { value: written }
            }
            6 => {
                store.delete(here, &name).unwrap();
                Op::Delete
            }
            _ => {
                let mut before = None;
                let swap = |value: &mut Vec<u8>| {
                    before = Some(digest(value));
                    value.clone_from(&new);
                };
                match store.read_modify_write(here, &name, &mut seen, swap).unwrap() {
                    true => Op::Rmw { value: before, new: written },
                    false => Op::Read { value: None },
                }
            }
        };
        let ret = Some(Nanos(clock.fetch_add(1, SeqCst)));
        calls.push(Operation { client: client.into(), key, op, invoke, ret });
    }
    calls
}

#[test]
fn the_history_of_many_threads_on_hot_keys_is_linearizable() {
    let rack = rack(3);
    let config = LockedStoreConfig { expected_keys: 2, record_bytes: 40, salt: 1 };
    let store = LockedStore::create(&mut rack.node(NodeId(0)), &config).unwrap();
    let clock = AtomicU64::new(0);
    let history: Vec<Operation<usize>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (store, clock, mut here) = (&store, &clock, rack.node(NodeId(number % 3)));
                scope.spawn(move || client(store, &mut here, number, clock))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    match check_history(&history, Limits::default()) {
        Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
        Verdict::Violation(violation) => panic!("{violation}"),
        Verdict::Unknown { why } => panic!("{why}"),
    }
}
