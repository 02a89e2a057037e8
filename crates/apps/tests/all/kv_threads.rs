//! Many threads on a few hot keys: the history of what they were told is linearizable.

use crate::support;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use apps::kv::{KvConfig, KvStore};
use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{Nanos, block_on};
use random::Dice;
use support::memory::{Rack, Worker};
use support::values::{number, value};

const THREADS: u16 = 6;
const OPERATIONS: u16 = 3000;
const KEYS: usize = 5;
/// The shortest value. Others have 4 and 16 times the length, so that records move, also into several blocks.
const LEN: usize = 60;

/// Values are told apart by thread and operation.
fn digest(value: &[u8]) -> u64 {
    number(value).unwrap_or_else(|| panic!("a torn value: {value:?}")).into()
}

fn client(store: &KvStore, mem: &mut Worker, client: u16, clock: &AtomicU64) -> Vec<Operation<usize>> {
    let mut random = Dice::new(client.into());
    let mut calls = Vec::new();
    let mut seen = Vec::new();
    for operation in 0..OPERATIONS {
        let key = random.pick(KEYS);
        let name = key.to_le_bytes();
        let len = LEN << (random.pick(3) * 2);
        let new = value(client * OPERATIONS + operation + 1, len);
        let written = digest(&new);
        let invoke = Nanos(clock.fetch_add(1, SeqCst));
        let op = match random.pick(10) {
            0..3 => {
                let found = block_on(store.get(mem, &name, &mut seen)).unwrap();
                Op::Read { value: found.then(|| digest(&seen)) }
            }
            3..6 => {
                block_on(store.put(mem, &name, &new)).unwrap();
                Op::Insert { value: written }
            }
            6 => {
                block_on(store.delete(mem, &name)).unwrap();
                Op::Delete
            }
            _ => {
                let mut before = None;
                let swap = |value: &mut Vec<u8>| {
                    before = Some(digest(value));
                    value.clone_from(&new);
                };
                match block_on(store.read_modify_write(mem, &name, &mut seen, swap)).unwrap() {
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
    let rack = Rack::new(3, 512, 1 << 20, 11);
    let mut mem = rack.worker(0);
    let store =
        block_on(KvStore::create(&mut mem, &KvConfig { expected_keys: 8, ..KvConfig::default() })).unwrap();
    let empty = rack.allocations();
    let clock = AtomicU64::new(0);
    let history: Vec<Operation<usize>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (store, mut mem, clock) = (store.clone(), rack.worker(number % 3), &clock);
                scope.spawn(move || client(&store, &mut mem, number, clock))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    match check_history(&history, Limits::default()) {
        Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
        Verdict::Violation(violation) => panic!("{violation}"),
        Verdict::Unknown { why } => panic!("{why}"),
    }
    for key in 0..KEYS {
        block_on(store.delete(&mut mem, &key.to_le_bytes())).unwrap();
    }
    assert_eq!(rack.allocations(), empty, "every record was given back");
}
