//! The ordered store: one worker sees what a map has; of several, some order of their operations explains what they are told, key by key;
//! and scans find what stays, in order.

use std::collections::BTreeMap;

use apps::ordered::{OrderedError, OrderedStore};
use rackmem::{Config, Discipline, Memory as _, NodeId, Rack, block_on};
use random::Dice;

use super::support::clients::Run;
use super::support::history::{Answer, Ask, append, assert_linearizable};
use super::support::interleave::{self, Task};
use super::support::memory::{self, Worker};
use super::support::values::value;
use super::support::{Replay, seeds};

/// Nine entries fill a node of the tree.
const BLOCK: u64 = 256;
const LONGEST: usize = 100;

async fn scanned(store: &OrderedStore, mem: &mut Worker, from: u128, most: usize) -> Vec<(u128, Vec<u8>)> {
    let mut found = Vec::new();
    let shown = store.scan(mem, from, most, |key, value| found.push((key, value.to_vec()))).await.unwrap();
    assert_eq!(shown, found.len());
    found
}

async fn like_a_map(mem: &mut Worker, random: &mut Dice, keys: u64) {
    let store = OrderedStore::create(mem, LONGEST).await.unwrap();
    let store = OrderedStore::open(mem, store.root()).await.unwrap();
    let mut map: BTreeMap<u128, Vec<u8>> = BTreeMap::new();
    let spread = [1, 1 << 90][random.pick(2)];
    for step in 0..300 {
        let key = u128::from(random.below(keys)) * spread;
        let new = value(step, random.pick(LONGEST + 1));
        let mut found = Vec::new();
        match random.pick(6) {
            0 | 1 => {
                let was = map.insert(key, new.clone());
                assert_eq!(store.put(mem, key, &new).await, Ok(was.is_some()), "step {step}");
            }
            2 => assert_eq!(store.delete(mem, key).await, Ok(map.remove(&key).is_some()), "step {step}"),
            3 => {
                let at = random.pick(20);
                let is_there = store.update_in_place(mem, key, at, &new).await;
                assert_eq!(is_there, Ok(map.contains_key(&key)), "step {step}");
                if let Some(part) = map.get_mut(&key).and_then(|value| value.get_mut(at..)) {
                    let len = part.len().min(new.len());
                    part[..len].copy_from_slice(&new[..len]);
                }
            }
            4 => {
                let changed =
                    store.read_modify_write(mem, key, |value| append(value, &new, LONGEST + 10)).await;
                let mut longer = map.get(&key).cloned();
                longer.iter_mut().for_each(|value| append(value, &new, LONGEST + 10));
                match longer {
                    Some(longer) if longer.len() > LONGEST => {
                        let too_long = OrderedError::TooLong { len: longer.len(), most: LONGEST };
                        assert_eq!(changed, Err(too_long), "step {step}");
                    }
                    longer => {
                        assert_eq!(changed, Ok(longer.is_some()), "step {step}");
                        map.extend(longer.map(|longer| (key, longer)));
                    }
                }
            }
            _ => {
                let most = random.pick(30);
                let expected: Vec<_> =
                    map.range(key..).take(most).map(|(key, value)| (*key, value.clone())).collect();
                assert_eq!(scanned(&store, mem, key, most).await, expected, "step {step}");
            }
        }
        assert_eq!(store.get(mem, key, &mut found).await, Ok(map.contains_key(&key)), "step {step}");
        assert_eq!(found, map.get(&key).cloned().unwrap_or_default(), "step {step}");
    }
    let all: Vec<_> = map.into_iter().collect();
    assert_eq!(scanned(&store, mem, 0, usize::MAX).await, all);
}

#[test]
fn one_worker_sees_what_a_map_has() {
    for seed in seeds(150) {
        let _replay = Replay { file: "ordered", test: "one_worker_sees_what_a_map_has", seed };
        let mut random = Dice::new(seed);
        let keys = [5, 40, 300][random.pick(3)];
        block_on(like_a_map(&mut memory::Rack::new(2, BLOCK, 1 << 20, seed).worker(0), &mut random, keys));
    }
}

async fn answer(store: &OrderedStore, mem: &mut Worker, key: u128, ask: &Ask) -> Answer {
    let mut value = Vec::new();
    match ask {
        Ask::Get => Answer::Value(store.get(mem, key, &mut value).await.unwrap().then_some(value)),
        Ask::Put(new) => Answer::Bool(store.put(mem, key, new).await.unwrap()),
        Ask::Delete => Answer::Bool(store.delete(mem, key).await.unwrap()),
        Ask::Append(bytes, most) => {
            let change = |now: &mut Vec<u8>| {
                append(now, bytes, *most);
                value.clone_from(now);
            };
            Answer::Value(store.read_modify_write(mem, key, change).await.unwrap().then_some(value))
        }
        other => panic!("nobody asks {other:?} of this store"),
    }
}

#[test]
fn what_interleaved_workers_are_told_some_order_explains_and_scans_find_what_stays() {
    for seed in seeds(600) {
        let _replay = Replay {
            file: "ordered",
            test: "what_interleaved_workers_are_told_some_order_explains_and_scans_find_what_stays",
            seed,
        };
        let mut random = Dice::new(seed);
        let run = Run::on(memory::Rack::new(2, BLOCK, 1 << 19, seed));
        let mut mem = run.rack.worker(0);
        let store = block_on(OrderedStore::create(&mut mem, LONGEST)).unwrap();
        // Those that stay have odd keys.
        let stay: Vec<u128> = (0..random.below(20)).map(|number| u128::from(2 * number + 1)).collect();
        for key in &stay {
            block_on(store.put(&mut mem, *key, &key.to_le_bytes())).unwrap();
        }
        let (workers, keys) = (2 + random.pick(3), 1 + random.pick(3));
        let tasks = (0..workers).map(|worker| {
            let (run, stay) = (run.clone(), stay.clone());
            let mut random = Dice::new(random.next());
            let task: Task = Box::pin(async move {
                let mut mem = run.rack.yielding_worker(worker as u16 % 2);
                for operation in 0..6 {
                    let number = random.pick(keys);
                    let new = value((worker * 100 + operation + 1) as u16, 2 + random.pick(20));
                    let ask = match random.pick(6) {
                        0 => Ask::Get,
                        1 | 2 => Ask::Put(new),
                        3 => Ask::Delete,
                        4 => Ask::Append(new, LONGEST),
                        _ => {
                            let found = scanned(&store, &mut mem, 0, usize::MAX).await;
                            assert!(found.is_sorted_by(|one, other| one.0 < other.0), "{found:?}");
                            let odd = found.iter().filter(|(key, _)| key % 2 == 1);
                            assert!(odd.clone().map(|(key, _)| *key).eq(stay.iter().copied()), "{found:?}");
                            assert!(
                                odd.clone().all(|(key, value)| **value == key.to_le_bytes()),
                                "{found:?}"
                            );
                            continue;
                        }
                    };
                    let told = async |ask: &Ask| answer(&store, &mut mem, 2 * number as u128, ask).await;
                    run.written_down(worker, number, ask, told).await;
                }
            });
            task
        });
        interleave::run(seed, tasks.collect());
        assert_linearizable(&run.calls());
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let mut mem = memory::Rack::new(1, BLOCK, 1 << 18, 1).worker(0);
    let most = OrderedStore::longest_record(BLOCK as usize);
    let too_long = OrderedError::NoBlock { record_bytes: most + 1, most };
    assert_eq!(block_on(OrderedStore::create(&mut mem, most + 1)).unwrap_err(), too_long);
    let store = block_on(OrderedStore::create(&mut mem, most)).unwrap();
    block_on(store.put(&mut mem, 1, &vec![7; most])).unwrap();
    let why = block_on(store.put(&mut mem, 1, &vec![8; most + 1])).unwrap_err();
    assert_eq!(why, OrderedError::TooLong { len: most + 1, most });
    assert!(why.to_string().contains("longer than the 248 bytes"), "{why}");
    let mut found = Vec::new();
    assert_eq!(block_on(store.get(&mut mem, 1, &mut found)), Ok(true));
    assert_eq!(found, vec![7; most]);
    let plain = block_on(mem.alloc(64, NodeId(0), Discipline::Coherent)).unwrap();
    assert_eq!(
        block_on(OrderedStore::open(&mut mem, plain)).unwrap_err(),
        OrderedError::NotAStore { root: plain }
    );
}

#[test]
fn threads_of_an_embedded_rack_that_add_the_same_keys_miss_no_change() {
    let rack = Rack::embedded(Config { nodes: 2, ..Config::default() }).unwrap();
    let store = block_on(OrderedStore::create(&mut rack.node(NodeId(0)), 8)).unwrap();
    let counted: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let mut mem = rack.node(NodeId(thread % 2));
                scope.spawn(move || {
                    let mut added = 0;
                    for key in 0..2000 {
                        let count = |value: &mut Vec<u8>| value[0] += 1;
                        // One of those who find nothing puts the first; the others' puts set it back.
                        if !block_on(store.read_modify_write(&mut mem, key, count)).unwrap() {
                            added += u64::from(!block_on(store.put(&mut mem, key, &[1])).unwrap());
                        }
                    }
                    added
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let mut keys = 0;
    let shown = block_on(store.scan(&mut rack.node(NodeId(1)), 0, usize::MAX, |key, value| {
        assert!(key == keys && (1..=4).contains(&value[0]), "{key}: {value:?}");
        keys += 1;
    }));
    assert_eq!(shown, Ok(2000));
    assert_eq!(counted, 2000, "of all who add a key at once one is told that it was not there");
}
