//! The ordered index: what it says is what a map of the standard library says, whatever the order of steps.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::thread;

use apps::tree::Tree;
use rackmem::{Config, NodeId, Rack, block_on};
use random::Dice;
use simulated::{SimulatedConfig, SimulatedRack, Until};

use super::support::interleave::{self, Task};
use super::support::memory::{self, Worker};
use super::support::{Replay, seeds};

/// Nine entries fill a node: a few dozen keys make a tree of three levels.
const BLOCK: u64 = 256;

fn every(entries: &BTreeMap<u128, u64>, from: u128, most: usize, until: u128) -> Vec<(u128, u64)> {
    let mut found: Vec<_> = entries.range(from..).map(|(key, value)| (*key, *value)).take(most).collect();
    let end = found.iter().position(|(key, _)| *key > until);
    found.truncate(end.map_or(found.len(), |end| end + 1));
    found
}

async fn like_a_map(mem: &mut Worker, random: &mut Dice, keys: u64) {
    let tree = Tree::create(mem).await.unwrap();
    let mut map = BTreeMap::new();
    let spread = [1, 1 << 70][random.pick(2)];
    let key = |number: u64| u128::from(number) * spread;
    for step in 0..400 {
        let (k, mut value) = (key(random.below(keys)), random.below(3));
        match random.pick(5) {
            0 | 1 => {
                let is_new = !map.contains_key(&k);
                assert_eq!(tree.insert(mem, k, value).await, Ok(is_new), "step {step}");
                map.entry(k).or_insert(value);
            }
            2 | 3 => {
                value = map.get(&k).copied().unwrap_or(value);
                let value = if random.percent(90) { value } else { value + 1 };
                let has = map.get(&k) == Some(&value);
                assert_eq!(tree.remove(mem, k, value).await, Ok(has), "step {step}");
                map.retain(|found, _| *found != k || !has);
            }
            _ => {
                assert_eq!(tree.get(mem, k).await.unwrap(), map.get(&k).copied(), "step {step}");
                let (most, until) = (random.pick(40), key(random.below(keys)));
                assert_eq!(tree.scan(mem, k, most, until).await.unwrap(), every(&map, k, most, until));
            }
        }
    }
    let all: Vec<_> = map.into_iter().collect();
    assert_eq!(tree.scan(mem, 0, usize::MAX, u128::MAX).await.unwrap(), all);
    // Everything goes, in one order or the other, and comes back.
    let mut order = all.clone();
    if random.percent(50) {
        order.reverse();
    }
    for (key, value) in &order {
        assert_eq!(tree.remove(mem, *key, *value).await, Ok(true));
    }
    assert_eq!(tree.scan(mem, 0, usize::MAX, u128::MAX).await.unwrap(), []);
    for (key, value) in &order {
        assert_eq!(tree.insert(mem, *key, *value).await, Ok(true));
    }
    assert_eq!(tree.scan(mem, 0, usize::MAX, u128::MAX).await.unwrap(), all);
}

#[test]
fn one_worker_sees_what_a_map_has() {
    for seed in seeds(150) {
        let _replay = Replay { file: "tree", test: "one_worker_sees_what_a_map_has", seed };
        let mut random = Dice::new(seed);
        let keys = [5, 40, 300][random.pick(3)];
        block_on(like_a_map(&mut memory::Rack::new(2, BLOCK, 1 << 19, seed).worker(0), &mut random, keys));
    }
}

/// Each worker has keys of its own, between those of the others, so it knows what they are at any time; scans see each key
/// that nobody changes, in order, and none twice.
#[test]
fn interleaved_workers_find_their_own_keys_and_scans_all_that_stay() {
    for seed in seeds(600) {
        let _replay = Replay {
            file: "tree",
            test: "interleaved_workers_find_their_own_keys_and_scans_all_that_stay",
            seed,
        };
        let mut random = Dice::new(seed);
        let rack = memory::Rack::new(2, BLOCK, 1 << 19, seed);
        let mut mem = rack.worker(0);
        let tree = block_on(Tree::create(&mut mem)).unwrap();
        let (workers, range) = (2 + random.pick(3), [4, 12, 30][random.pick(3)]);
        let key = |worker: usize, number: u64| u128::from(number * 8 + worker as u64);
        // Keys that stay are those of worker 7.
        let stay: BTreeSet<u128> = (0..random.below(2 * range)).map(|n| key(7, n / 2)).collect();
        for key in &stay {
            block_on(tree.insert(&mut mem, *key, 7)).unwrap();
        }
        let left: Rc<RefCell<BTreeMap<u128, u64>>> = Rc::default();
        left.borrow_mut().extend(stay.iter().map(|key| (*key, 7)));
        let tasks: Vec<Task> = (0..workers)
            .map(|worker| {
                let (mut mem, mut random) =
                    (rack.yielding_worker(worker as u16 % 2), Dice::new(random.next()));
                let (left, stay) = (Rc::clone(&left), stay.clone());
                let task: Task = Box::pin(async move {
                    let mut own = BTreeMap::new();
                    for _ in 0..25 {
                        let key = key(worker, random.below(range));
                        match random.pick(4) {
                            0 | 1 => {
                                let value = random.next();
                                let is_new = tree.insert(&mut mem, key, value).await.unwrap();
                                assert_eq!(is_new, !own.contains_key(&key));
                                own.entry(key).or_insert(value);
                            }
                            2 => {
                                let value = own.remove(&key);
                                let removed = tree.remove(&mut mem, key, value.unwrap_or(0)).await.unwrap();
                                assert_eq!(removed, value.is_some());
                            }
                            _ => {
                                assert_eq!(tree.get(&mut mem, key).await.unwrap(), own.get(&key).copied());
                                let found = tree.scan(&mut mem, key, usize::MAX, u128::MAX).await.unwrap();
                                assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{found:?}");
                                let has = |key| found.binary_search_by_key(key, |entry| entry.0).is_ok();
                                assert!(stay.range(key..).all(has), "{found:?}");
                                assert!(own.range(key..).all(|(key, _)| has(key)), "{found:?}");
                            }
                        }
                    }
                    left.borrow_mut().extend(own);
                });
                task
            })
            .collect();
        interleave::run(seed, tasks);
        let all: Vec<_> = left.take().into_iter().collect();
        assert_eq!(block_on(tree.scan(&mut mem, 0, usize::MAX, u128::MAX)).unwrap(), all);
    }
}

#[test]
fn whoever_stops_in_the_middle_of_a_split_leaves_a_tree_that_others_use() {
    for stop in 0..40 {
        let rack = memory::Rack::new(1, BLOCK, 1 << 18, stop);
        let mut mem = rack.worker(0);
        let tree = block_on(Tree::create(&mut mem)).unwrap();
        for key in 0..60 {
            block_on(tree.insert(&mut mem, key * 10, 1)).unwrap();
        }
        let mut mem_of_task = rack.yielding_worker(0);
        let mut task: Task = Box::pin(async move {
            for key in 100..106 {
                tree.insert(&mut mem_of_task, key, 2).await.unwrap();
            }
            for key in (0..100).step_by(10) {
                tree.remove(&mut mem_of_task, key, 1).await.unwrap();
            }
        });
        interleave::run_alone(&mut task, 4 * stop);
        drop(task);
        let before = block_on(tree.scan(&mut mem, 0, usize::MAX, u128::MAX)).unwrap();
        let mut map: BTreeMap<_, _> = before.into_iter().collect();
        for key in 0..600 {
            assert_eq!(block_on(tree.insert(&mut mem, key, 3)), Ok(!map.contains_key(&key)));
            map.entry(key).or_insert(3);
            assert_eq!(block_on(tree.get(&mut mem, key)).unwrap(), map.get(&key).copied());
        }
        let all: Vec<_> = map.into_iter().collect();
        assert_eq!(block_on(tree.scan(&mut mem, 0, usize::MAX, u128::MAX)).unwrap(), all);
    }
}

#[test]
fn threads_of_an_embedded_rack_lose_no_key() {
    const EACH: u128 = 4000;
    let rack = Rack::embedded(Config { nodes: 2, ..Config::default() }).unwrap();
    let tree = block_on(Tree::create(&mut rack.node(NodeId(0)))).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let mut mem = rack.node(NodeId(thread % 2));
            scope.spawn(move || {
                for number in 0..EACH {
                    let key = number * 4 + u128::from(thread);
                    assert_eq!(block_on(tree.insert(&mut mem, key, number as u64)), Ok(true));
                    if number % 2 == 1 {
                        assert_eq!(block_on(tree.remove(&mut mem, key, number as u64)), Ok(true));
                    }
                }
            });
        }
    });
    let found = block_on(tree.scan(&mut rack.node(NodeId(1)), 0, usize::MAX, u128::MAX)).unwrap();
    let even = (0..EACH).step_by(2).flat_map(|n| (0..4).map(move |thread| (n * 4 + thread, n as u64)));
    assert_eq!(found, even.collect::<Vec<_>>());
}

#[test]
fn the_tree_runs_on_a_simulated_rack_as_it_is() {
    let mut rack = SimulatedRack::new(SimulatedConfig { nodes: 2, ..SimulatedConfig::default() }).unwrap();
    let tree = rack.run_one(NodeId(0), 0, |mut mem| async move { Tree::create(&mut mem).await.unwrap() });
    for node in 0..2 {
        rack.spawn(NodeId(node), 0, move |mut mem| async move {
            for number in 0..400 {
                tree.insert(&mut mem, u128::from(number * 2 + u64::from(node)), number).await.unwrap();
            }
        });
    }
    rack.run(Until::WorkersDone);
    let found =
        rack.run_one(
            NodeId(1),
            1,
            move |mut mem| async move { tree.scan(&mut mem, 100, 50, 120).await.unwrap() },
        );
    assert_eq!(found, (100..122).map(|key| (key, (key / 2) as u64)).collect::<Vec<_>>());
}
