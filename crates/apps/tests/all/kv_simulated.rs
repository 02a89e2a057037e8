//! The key-value store runs on a simulated rack as it is: linearizable, and the same seed gives the same run.

use std::cell::RefCell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use apps::kv::{KvConfig, KvStore};
use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{Memory, NodeId};
use random::Random;
use simulated::{Ended, SimulatedConfig, SimulatedRack, Until};

const NODES: u16 = 3;
const KEYS: u64 = 6;

/// A value that tells who wrote it, in one of three lengths, so that records move.
fn value(number: u64, dice: &mut Random) -> Vec<u8> {
    let mut value = vec![number as u8; 16 << (dice.below(3) * 2)];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

fn digest(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

async fn client<M: Memory>(
    store: KvStore,
    mut mem: M,
    client: u64,
    seed: u64,
    calls: Rc<RefCell<Vec<Operation<u64>>>>,
) {
    let mut dice = Random::new(seed * 1000 + client);
    let mut seen = Vec::new();
    for round in 1..=60 {
        let key = dice.below(KEYS);
        let name = key.to_le_bytes();
        let new = value(client * 1000 + round, &mut dice);
        let invoke = mem.now();
        let op = match dice.below(10) {
            0..4 => {
                let found = store.get(&mut mem, &name, &mut seen).await.unwrap();
                Op::Read { value: found.then(|| digest(&seen)) }
            }
            4..7 => {
                store.put(&mut mem, &name, &new).await.unwrap();
                Op::Insert { value: digest(&new) }
            }
            7 => {
                store.delete(&mut mem, &name).await.unwrap();
                Op::Delete
            }
            _ => {
                let mut before = None;
                let swap = |value: &mut Vec<u8>| {
                    before = Some(digest(value));
                    value.clone_from(&new);
                };
                match store.read_modify_write(&mut mem, &name, &mut seen, swap).await.unwrap() {
                    true => Op::Rmw { value: before, new: digest(&new) },
                    false => Op::Read { value: None },
                }
            }
        };
        calls.borrow_mut().push(Operation { client, key, op, invoke, ret: Some(mem.now()) });
    }
}

/// What the clients of one run were told, and when.
fn run(seed: u64) -> Vec<Operation<u64>> {
    let config = SimulatedConfig {
        nodes: NODES.into(),
        threads: 2,
        cache: 16 * 4096,
        memory: 1 << 20,
        switch_entries: 70,
        seed,
        check: true,
        ..SimulatedConfig::default()
    };
    let mut rack = SimulatedRack::new(config).unwrap();
    let store = rack.run_one(NodeId(0), 0, |mut mem| async move {
        KvStore::create(&mut mem, &KvConfig { expected_keys: 8, ..KvConfig::default() }).await.unwrap()
    });
    let calls = Rc::new(RefCell::new(Vec::new()));
    for number in 0..NODES * 2 {
        let (store, calls) = (store.clone(), Rc::clone(&calls));
        rack.spawn(NodeId(number / 2), usize::from(number % 2), move |mem| {
            client(store, mem, number.into(), seed, calls)
        });
    }
    assert_eq!(rack.run(Until::WorkersDone).ended, Ended::WorkersDone);
    calls.take()
}

fn fingerprint(history: &[Operation<u64>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    history.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn the_history_of_the_store_on_a_simulated_rack_is_linearizable() {
    for seed in 1..=3 {
        let history = run(seed);
        match check_history(&history, Limits::default()) {
            Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
            verdict => panic!("seed {seed}: {verdict:?}"),
        }
    }
}

#[test]
fn a_seed_gives_one_run_and_another_seed_another_one() {
    assert_eq!(fingerprint(&run(5)), fingerprint(&run(5)));
    assert_ne!(fingerprint(&run(5)), fingerprint(&run(6)));
}
