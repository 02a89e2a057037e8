//! The table on plain memory: a thread is a node where each has a store of its own over the same words.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread;
use std::time::Duration;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{GlobalAddr, Nanos, NodeId};
use random::Dice;

use super::layout::Layout;
use super::operations::Probe;
use super::{Error, MappedStore, MappedStoreConfig};
use crate::kv::hash::KeyHash;

type Store<'a> = MappedStore<&'a [AtomicU64]>;

const NODES: u16 = 3;

fn memory(config: &MappedStoreConfig) -> Vec<AtomicU64> {
    let bytes = config.bytes();
    (0..bytes / 8).map(|_| AtomicU64::new(0)).collect()
}

fn store<'a>(memory: &'a [AtomicU64], config: &MappedStoreConfig, node: u16) -> Store<'a> {
    let layout = Layout::of(config);
    let store = MappedStore::over(memory, GlobalAddr::from_bits(0), layout, NodeId(node));
    MappedStore { longest_write: Duration::from_millis(1), ..store }
}

fn get(store: &Store<'_>, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = vec![1, 2, 3];
    let found = store.get(key, &mut value).unwrap();
    assert!(found || value.is_empty());
    found.then_some(value)
}

#[test]
fn slots_do_not_overlap_and_lie_in_one_page_if_they_fit() {
    for value_bytes in [0, 1, 8, 100, 460, 1000, 1300, 1340, 2000, 4000, 4100, 10_000] {
        for key_bytes in [0, 1, 24] {
            let config = MappedStoreConfig { expected_keys: 100, key_bytes, value_bytes, salt: 0 };
            let layout = Layout::of(&config);
            let mut end = Layout::index() as u64 + layout.groups();
            for slot in 0..layout.slots {
                let first = layout.places().of(slot) as u64;
                assert!(
                    first >= end,
                    "{config:?}: slot {slot} is at {first}, and the one before ends at {end}"
                );
                end = first + layout.slot_words();
                let pages = (end - 1) / 512 - first / 512;
                assert!(layout.slot_words() > 512 || pages == 0, "{config:?}: slot {slot} is on two pages");
            }
            assert!(end <= layout.bytes() / 8, "{config:?}");
        }
    }
}

#[test]
fn every_operation_answers_as_a_map_does_whichever_node_asks() {
    let config = MappedStoreConfig { expected_keys: 60, key_bytes: 9, value_bytes: 50, salt: 3 };
    let memory = memory(&config);
    let stores = [0, 1, 2].map(|node| store(&memory, &config, node));
    let (mut dice, mut model, mut seen) = (Dice::new(5), BTreeMap::<Vec<u8>, Vec<u8>>::new(), Vec::new());
    for step in 0..20_000_u32 {
        let store = &stores[dice.pick(3)];
        let key = format!("key {}", dice.pick(60)).into_bytes();
        let new = step.to_le_bytes().repeat(13)[..dice.pick(51)].to_vec();
        match dice.pick(6) {
            0 => assert_eq!(store.put(&key, &new).unwrap(), model.insert(key, new).is_some()),
            1 => {
                assert_eq!(store.insert(&key, &new).unwrap(), !model.contains_key(&key));
                model.entry(key).or_insert(new);
            }
            2 => assert_eq!(store.delete(&key).unwrap(), model.remove(&key).is_some()),
            3 => {
                let change = |value: &mut Vec<u8>| value.splice(..0, *b"+").for_each(drop);
                let done = store.read_modify_write(&key, &mut seen, change);
                match model.get_mut(&key) {
                    None => assert!(!done.unwrap()),
                    Some(value) if value.len() < 50 => {
                        change(value);
                        assert!(done.unwrap() && seen == *value);
                    }
                    Some(_) => assert!(matches!(done, Err(Error::ValueTooLong { len: 51, most: 50 }))),
                }
            }
            4 => {
                let (offset, bytes) = (dice.pick(50), [step as u8; 5]);
                let done = store.update_in_place(&key, offset, &bytes);
                match model.get_mut(&key) {
                    None => assert!(!done.unwrap()),
                    Some(value) if offset + 5 <= value.len() => {
                        assert!(done.unwrap());
                        value[offset..offset + 5].copy_from_slice(&bytes);
                    }
                    Some(_) => assert!(matches!(done, Err(Error::OutsideValue { .. }))),
                }
            }
            _ => assert_eq!(get(store, &key), model.get(&key).cloned(), "step {step}"),
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_a_full_store_keeps_what_it_has() {
    let config = MappedStoreConfig { expected_keys: 100, key_bytes: 12, value_bytes: 30, salt: 0 };
    let memory = memory(&config);
    let stores = [0, 1, 2].map(|node| store(&memory, &config, node));
    assert!(matches!(stores[0].put(&[0; 13], b""), Err(Error::KeyTooLong { len: 13, most: 12 })));
    assert!(matches!(stores[0].get(&[0; 13], &mut Vec::new()), Err(Error::KeyTooLong { len: 13, most: 12 })));
    assert!(matches!(stores[0].put(b"key", &[0; 31]), Err(Error::ValueTooLong { len: 31, most: 30 })));
    let put = |number: u32| stores[number as usize % 3].put(&number.to_le_bytes(), &[7; 30]);
    let put = (0..).take_while(|number| put(*number).is_ok()).count() as u32;
    assert_eq!(u64::from(put), Layout::of(&config).slots);
    assert!(matches!(stores[0].put(&put.to_le_bytes(), b""), Err(Error::Full { .. })));
    for number in 0..put {
        assert_eq!(get(&stores[1], &number.to_le_bytes()), Some(vec![7; 30]));
    }
    assert!(stores[0].delete(&[0; 4]).unwrap() && !stores[0].put(&[0; 4], b"again").unwrap());
    assert_eq!(get(&stores[1], &put.to_le_bytes()), None);
}

#[test]
fn a_writer_that_stopped_in_the_middle_is_named_and_other_keys_go_on() {
    let config = MappedStoreConfig::default();
    let memory = memory(&config);
    let stores = [0, 1].map(|node| store(&memory, &config, node));
    stores[0].put(b"one", b"1").unwrap();
    stores[0].put(b"two", b"2").unwrap();
    std::mem::forget(stores[1].lock_present(b"one").unwrap().unwrap());
    let failed = stores[0].get(b"one", &mut Vec::new());
    assert!(matches!(failed, Err(Error::Abandoned { node: NodeId(1) })), "{failed:?}");
    let failed = stores[0].put(b"one", b"3");
    assert!(matches!(failed, Err(Error::Abandoned { node: NodeId(1) })), "{failed:?}");
    assert_eq!(get(&stores[0], b"two"), Some(vec![b'2']));
}

#[test]
fn who_claims_a_slot_in_a_group_that_has_changed_since_looks_again() {
    let index = [AtomicU64::new(0)];
    let search = |key: &[u8]| Probe::new(&index, KeyHash::of(key, 0));
    // All of them see an empty group. The third has the first one's key.
    let [mut first, mut second, mut third] = [&b"one"[..], b"two", b"one"].map(search);
    assert_eq!([first.next(true), second.next(true), third.next(true)], [Some(0), Some(1), Some(0)]);
    // If another key with the same tag took that slot, a third one is claimed, and all of the group looked at once
    // more.
    assert_eq!([third.next(true), third.next(true), search(b"three").next(false)], [Some(0), Some(2), None]);
}

#[test]
fn each_key_that_nodes_add_at_once_is_added_by_one_of_them() {
    const KEYS: u32 = 400;
    for round in 0..50 {
        let config =
            MappedStoreConfig { expected_keys: KEYS.into(), salt: round, ..MappedStoreConfig::default() };
        let (memory, start) = (memory(&config), Barrier::new(NODES.into()));
        let added = &|node| {
            let store = Store { longest_write: super::LONGEST_WRITE, ..store(&memory, &config, node) };
            start.wait();
            (0..KEYS).filter(|key| store.insert(&key.to_le_bytes(), &[1]).unwrap()).count()
        };
        let added: usize = thread::scope(|scope| {
            let nodes = [0, 1, 2].map(|node| scope.spawn(move || added(node)));
            nodes.into_iter().map(|node| node.join().unwrap()).sum()
        });
        assert_eq!(added, KEYS as usize, "round {round}");
        let store = store(&memory, &config, 0);
        assert!((0..KEYS).all(|key| get(&store, &key.to_le_bytes()) == Some(vec![1])), "round {round}");
    }
}

const OPERATIONS: u64 = 4000;
const KEYS: usize = 4;

/// Values are told apart by thread and operation, and a torn one is found.
fn digest(value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks::<8>();
    assert!(rest.is_empty() && words.iter().all(|word| *word == words[0]), "a torn value: {value:?}");
    u64::from_le_bytes(words[0])
}

fn client(store: &Store<'_>, seed: u64, client: u64, clock: &AtomicU64) -> Vec<Operation<usize>> {
    let (mut dice, mut seen, mut calls) = (Dice::new(seed << 8 | client), Vec::new(), Vec::new());
    for number in 1..=OPERATIONS {
        let key = dice.pick(KEYS);
        let name = format!("a key that has {key} in it").into_bytes();
        let written = client * OPERATIONS + number;
        let new = written.to_le_bytes().repeat(1 + dice.pick(40));
        let invoke = Nanos(clock.fetch_add(1, SeqCst));
        let op = match dice.pick(10) {
            0..4 => Op::Read { value: store.get(&name, &mut seen).unwrap().then(|| digest(&seen)) },
            4..6 => {
                store.put(&name, &new).unwrap();
                Op::Insert { value: written }
            }
            6 => {
                store.delete(&name).unwrap();
                Op::Delete
            }
            7 => match store.insert(&name, &new).unwrap() {
                true => Op::Rmw { value: None, new: written },
                false => continue,
            },
            _ => {
                let mut before = None;
                let swap = |value: &mut Vec<u8>| {
                    before = Some(digest(value));
                    value.clone_from(&new);
                };
                match store.read_modify_write(&name, &mut seen, swap).unwrap() {
                    true => Op::Rmw { value: before, new: written },
                    false => Op::Read { value: None },
                }
            }
        };
        let ret = Some(Nanos(clock.fetch_add(1, SeqCst)));
        calls.push(Operation { client, key, op, invoke, ret });
    }
    calls
}

#[test]
fn the_history_of_nodes_that_work_on_the_same_keys_is_linearizable() {
    let given = std::env::var("SEED").ok().map(|seed| seed.parse::<u64>().expect("SEED is a number"));
    for seed in given.map_or(0..4, |seed| seed..seed + 1) {
        println!("SEED={seed} cargo test -p rackmem-apps kv_mapped");
        let config = MappedStoreConfig { expected_keys: 4, key_bytes: 30, value_bytes: 320, salt: seed };
        let (memory, clock) = (memory(&config), AtomicU64::new(0));
        let history: Vec<_> = thread::scope(|scope| {
            let clients = (0..2 * NODES).map(|number| {
                let (memory, config, clock) = (&memory, &config, &clock);
                scope.spawn(move || {
                    // A preempted thread is not a dead one.
                    let store = Store {
                        longest_write: super::LONGEST_WRITE,
                        ..store(memory, config, number % NODES)
                    };
                    client(&store, seed, number.into(), clock)
                })
            });
            let clients: Vec<_> = clients.collect();
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
        });
        let verdict = check_history(&history, Limits::default());
        assert!(matches!(verdict, Verdict::Linearizable { .. }), "{verdict}");
        assert!(clock.load(Relaxed) > 1000);
    }
}
