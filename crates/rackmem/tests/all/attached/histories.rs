//! Histories of applications on the same and on other daemons, together with a thread of a node, are linearizable.

use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{Discipline, GlobalAddr, Memory, Nanos, NodeId, Window, block_on};
use random::Random;

use crate::attached::rig::Daemons;

const EACH: u64 = 400;

/// One client's operations on a few words.
fn work<M: Memory>(
    memory: &mut M,
    client: u64,
    base: GlobalAddr,
    now: impl Fn() -> Nanos,
) -> Vec<Operation<u64>> {
    let mut dice = Random::new(client);
    let operation = |round: u64| {
        let addr = base + dice.below(3) * 4096 + dice.below(2) * 512;
        let value = 1 + client * 1_000_000 + round;
        let invoke = now();
        let op = match dice.below(3) {
            0 => {
                block_on(memory.write_word(addr, value)).unwrap();
                Op::Insert { value }
            }
            1 => {
                let swap = |window: &Window<'_>| {
                    let old = window.word(0);
                    window.set_word(0, value);
                    old
                };
                Op::Rmw { value: Some(block_on(memory.update(addr, 8, swap)).unwrap()), new: value }
            }
            _ => Op::Read { value: Some(block_on(memory.read_word(addr)).unwrap()) },
        };
        Operation { client, key: addr.bits(), op, invoke, ret: Some(now()) }
    };
    (0..EACH).map(operation).collect()
}

#[test]
fn words_of_two_applications_on_one_daemon_and_of_others_are_linearizable() {
    let rack = Daemons::start();
    let base = rack.attach(0).alloc(3 * 4096, NodeId(1), Discipline::Coherent).unwrap();
    let (all, began) = (Mutex::new(Vec::new()), Instant::now());
    let now = || Nanos(1 + began.elapsed().as_nanos() as u64);
    thread::scope(|scope| {
        for (client, node) in [(0, 0), (1, 0), (2, 1)] {
            let (mut app, all) = (rack.attach(node), &all);
            scope.spawn(move || all.lock().unwrap().extend(work(&mut app, client, base, now)));
        }
        let (mut here, all) = (rack.nodes[1].here(), &all);
        scope.spawn(move || all.lock().unwrap().extend(work(&mut here, 3, base, now)));
    });
    let mut all = all.into_inner().unwrap();
    // Memory is zeroed before anybody can touch it.
    let at = Nanos(0);
    let words = (0..6).map(|word| (base + word / 2 * 4096 + word % 2 * 512).bits());
    all.extend(words.map(|key| Operation {
        client: 99,
        key,
        op: Op::Insert { value: 0 },
        invoke: at,
        ret: Some(at),
    }));
    match check_history(&all, Limits::default()) {
        Verdict::Linearizable { operations, .. } => assert_eq!(operations as u64, 4 * EACH + 6),
        other => panic!("{other:?}"),
    }
}
