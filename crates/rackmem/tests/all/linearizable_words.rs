//! Concurrent histories of raw words are linearizable: words that share blocks, on several nodes, with a cache so
//! small that blocks come and go.

use std::sync::Mutex;
use std::thread;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{Config, Directory, Discipline, GlobalAddr, Memory, NodeId, Rack};
use random::Random;

fn history(directory: Directory, seed: u64) -> Vec<Operation<u64>> {
    let config = Config { nodes: 4, directory, cache: 8 * 4096, memory: 1 << 20, seed, ..Config::default() };
    let rack = Rack::embedded(config).unwrap();
    // 24 words on 12 blocks: more blocks than a cache holds, two words on each.
    let base = rack.node(NodeId(0)).alloc(12 * 4096, NodeId(1), Discipline::Coherent).unwrap();
    let word = |n: u64| base + (n / 2) * 4096 + (n % 2) * 512;
    let all = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for client in 0..8u64 {
            let (mut node, all) = (rack.node(NodeId((client % 4) as u16)), &all);
            scope.spawn(move || {
                let mut dice = Random::new(seed * 100 + client);
                let mut mine = Vec::new();
                for round in 0..1500 {
                    let addr: GlobalAddr =
                        word(if dice.below(2) == 0 { dice.below(2) } else { dice.below(24) });
                    let value = 1 + client * 1_000_000 + round;
                    let invoke = node.now();
                    let op = match dice.below(3) {
                        0 => {
                            node.write_word(addr, value).unwrap();
                            Op::Insert { value }
                        }
                        1 => {
                            let old = node
                                .update(addr, 8, |w| {
                                    let old = w.word(0);
                                    w.set_word(0, value);
                                    old
                                })
                                .unwrap();
                            Op::Rmw { value: Some(old), new: value }
                        }
                        _ => Op::Read { value: Some(node.read_word(addr).unwrap()) },
                    };
                    mine.push(Operation { client, key: addr.bits(), op, invoke, ret: Some(node.now()) });
                }
                all.lock().unwrap().extend(mine);
            });
        }
    });
    rack.check_invariants();
    let mut history = all.into_inner().unwrap();
    // Words begin as zeroes.
    for n in 0..24 {
        let (invoke, ret) = (rackmem::Nanos(0), Some(rackmem::Nanos(0)));
        history.push(Operation { client: 99, key: word(n).bits(), op: Op::Insert { value: 0 }, invoke, ret });
    }
    history
}

#[test]
fn words_are_linearizable_wherever_entries_are_kept() {
    for directory in [Directory::Auto, Directory::Switch, Directory::Home] {
        for seed in 1..=3 {
            let history = history(directory, seed);
            match check_history(&history, Limits::default()) {
                Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
                verdict => panic!("{directory:?}, seed {seed}: {verdict:?}"),
            }
        }
    }
}
