//! A few workers on a few keys, interleaved at every access to memory in thousands of ways: whatever they are
//! told, some order of their operations explains it, and no memory is lost.

use crate::support;

use apps::kv::{KvConfig, KvStore, Placement};
use rackmem::block_on;
use random::Dice;
use support::clients::Run;
use support::history::{Ask, assert_linearizable};
use support::interleave::{self, Task};
use support::memory::Rack;
use support::values::value;
use support::{Replay, seeds};

/// What a run is made of.
struct Scenario {
    block: u64,
    nodes: u16,
    workers: usize,
    keys: usize,
    operations: usize,
    expected_keys: u64,
    lengths: &'static [usize],
    /// How often each of get, put, insert, delete, update, append.
    mix: [usize; 6],
    /// Keys that are present at the start.
    loaded: bool,
}

/// Small values that fit in place, values that must move, values of several blocks.
const LENGTHS: &[usize] = &[0, 9, 40, 90, 200, 700];

fn ask(random: &mut Dice, scenario: &Scenario, number: u16) -> Ask {
    let total: usize = scenario.mix.iter().sum();
    let mut pick = random.pick(total);
    let kind = scenario.mix.iter().position(|share| {
        let here = pick < *share;
        pick = pick.wrapping_sub(*share);
        here
    });
    let len = scenario.lengths[random.pick(scenario.lengths.len())];
    match kind.expect("the mix is not empty") {
        0 => Ask::Get,
        1 => Ask::Put(value(number, len)),
        2 => Ask::Insert(value(number, len)),
        3 => Ask::Delete,
        4 => Ask::Update(random.pick(12), value(number, 1 + random.pick(30))),
        _ => Ask::Append(value(number, 2 + random.pick(40)), len + 60),
    }
}

fn run(seed: u64, scenario: &'static Scenario) {
    let rack = Rack::new(scenario.nodes, scenario.block, 1 << 18, seed);
    let run = Run::on(rack);
    let mut random = Dice::new(seed ^ 0x5eed);
    let mut mem = run.rack.worker(0);
    let placement = [Placement::Spread, Placement::Local][random.pick(2)];
    let config =
        KvConfig { expected_keys: scenario.expected_keys, placement, salt: seed, ..KvConfig::default() };
    let store = block_on(KvStore::create(&mut mem, &config)).unwrap();
    let empty = run.rack.allocations().len();
    if scenario.loaded {
        for number in 0..scenario.keys {
            block_on(run.call(&store, &mut mem, 99, number, Ask::Put(value(9999, 40))));
        }
    }
    let tasks = (0..scenario.workers).map(|worker| {
        let (run, store) = (run.clone(), store.clone());
        let mut random = Dice::new(random.next());
        let task: Task = Box::pin(async move {
            let node = u16::try_from(worker).unwrap() % scenario.nodes;
            let mut mem = run.rack.yielding_worker(node);
            for operation in 0..scenario.operations {
                let number = u16::try_from(worker * 100 + operation + 1).unwrap();
                let key = random.pick(scenario.keys);
                let ask = ask(&mut random, scenario, number);
                run.call(&store, &mut mem, worker, key, ask).await;
            }
        });
        task
    });
    interleave::run(seed, tasks.collect());

    // What is there at the end is part of the history, and so is that it can be deleted, once.
    for number in 0..scenario.keys {
        for ask in [Ask::Get, Ask::Delete, Ask::Delete, Ask::Get] {
            block_on(run.call(&store, &mut mem, 99, number, ask));
        }
    }
    assert_linearizable(&run.calls());
    if scenario.expected_keys > 0 {
        assert_eq!(run.rack.allocations().len(), empty, "every record was given back");
    }
    block_on(store.destroy(&mut mem)).unwrap();
    assert_eq!(run.rack.allocations(), [], "the store was given back");
}

fn run_all(test: &'static str, count: u64, scenario: &'static Scenario) {
    for seed in seeds(count) {
        let _replay = Replay { file: "kv_interleavings", test, seed };
        run(seed, scenario);
    }
}

const BASE: Scenario = Scenario {
    block: 512,
    nodes: 2,
    workers: 3,
    keys: 1,
    operations: 5,
    expected_keys: 8,
    lengths: LENGTHS,
    mix: [3, 3, 1, 2, 2, 2],
    loaded: true,
};

#[test]
fn any_operations_on_one_key_are_linearizable() {
    run_all("any_operations_on_one_key_are_linearizable", 6000, &BASE);
}

#[test]
fn any_operations_on_two_keys_that_share_memory_are_linearizable() {
    static SCENARIO: Scenario = Scenario { keys: 2, workers: 4, loaded: false, ..BASE };
    run_all("any_operations_on_two_keys_that_share_memory_are_linearizable", 4000, &SCENARIO);
}

#[test]
fn inserts_and_deletes_of_one_key_never_leave_it_twice() {
    static SCENARIO: Scenario =
        Scenario { workers: 4, mix: [1, 1, 3, 3, 0, 0], loaded: false, nodes: 1, ..BASE };
    run_all("inserts_and_deletes_of_one_key_never_leave_it_twice", 4000, &SCENARIO);
}

#[test]
fn no_change_is_lost_however_records_move() {
    static SCENARIO: Scenario = Scenario { workers: 4, mix: [0, 0, 0, 0, 2, 4], ..BASE };
    run_all("no_change_is_lost_however_records_move", 4000, &SCENARIO);
}

#[test]
fn values_of_several_blocks_are_linearizable() {
    static SCENARIO: Scenario = Scenario { block: 64, lengths: &[10, 100, 150, 300], ..BASE };
    run_all("values_of_several_blocks_are_linearizable", 3000, &SCENARIO);
}

#[test]
fn buckets_that_are_split_lose_no_key() {
    // One bucket of three slots for ten keys: it is split while it is used.
    static SCENARIO: Scenario = Scenario {
        block: 64,
        keys: 10,
        workers: 4,
        operations: 9,
        expected_keys: 0,
        lengths: &[4],
        mix: [2, 1, 4, 2, 0, 0],
        loaded: false,
        ..BASE
    };
    run_all("buckets_that_are_split_lose_no_key", 3000, &SCENARIO);
}

#[test]
fn records_that_move_while_their_bucket_is_split_are_not_lost() {
    static SCENARIO: Scenario = Scenario {
        block: 64,
        keys: 8,
        workers: 4,
        operations: 9,
        expected_keys: 0,
        lengths: &[4, 100],
        mix: [1, 4, 3, 2, 0, 1],
        loaded: false,
        ..BASE
    };
    run_all("records_that_move_while_their_bucket_is_split_are_not_lost", 3000, &SCENARIO);
}
