//! Histories of words on a rack of processes are linearizable: with a network that loses, doubles and reorders, and
//! with a switch that is killed and restarted meanwhile.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use check::AtEnd;
use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};
use rackmem::{Discipline, GlobalAddr, Nanos, NodeId};
use random::Random;

use crate::networked::rig::Processes;

/// Clients on all nodes work on 24 words in 12 blocks until something has been done to the rack, and each has done a
/// number of operations.
fn history(rack: &mut Processes, each: u64, meanwhile: impl FnOnce(&mut Processes)) -> Vec<Operation<u64>> {
    let base = rack.nodes[0].here().alloc(12 * 4096, NodeId(1), Discipline::Coherent).unwrap();
    let word = |n: u64| base + (n / 2) * 4096 + (n % 2) * 512;
    let (all, done, began) = (Mutex::new(Vec::new()), AtomicBool::new(false), Instant::now());
    let now = || Nanos(1 + u64::try_from(began.elapsed().as_nanos()).unwrap());
    let handles: Vec<_> = (0..6).map(|client| rack.nodes[client % rack.nodes.len()].here()).collect();
    thread::scope(|scope| {
        let _done = AtEnd(&done);
        for (client, mut node) in (0..).zip(handles) {
            let (all, done, now) = (&all, &done, &now);
            scope.spawn(move || {
                let mut dice = Random::new(client);
                let mut mine = Vec::new();
                let mut round = 0;
                while round < each || !done.load(Ordering::SeqCst) {
                    round += 1;
                    let addr: GlobalAddr =
                        word(if dice.below(2) == 0 { dice.below(2) } else { dice.below(24) });
                    let value = 1 + client * 1_000_000_000 + round;
                    let invoke = now();
                    let op = match dice.below(3) {
                        0 => {
                            node.write_word(addr, value).unwrap();
                            Op::Insert { value }
                        }
                        1 => {
                            let swap = |w: &rackmem::Window<'_>| {
                                let old = w.word(0);
                                w.set_word(0, value);
                                old
                            };
                            Op::Rmw { value: Some(node.update(addr, 8, swap).unwrap()), new: value }
                        }
                        _ => Op::Read { value: Some(node.read_word(addr).unwrap()) },
                    };
                    mine.push(Operation { client, key: addr.bits(), op, invoke, ret: Some(now()) });
                }
                all.lock().unwrap().extend(mine);
            });
        }
        meanwhile(rack);
    });
    let mut all = all.into_inner().unwrap();
    for key in all.iter().map(|operation| operation.key).collect::<std::collections::BTreeSet<_>>() {
        // Memory is zeroed before anybody can touch it.
        all.push(Operation {
            client: 99,
            key,
            op: Op::Insert { value: 0 },
            invoke: Nanos(0),
            ret: Some(Nanos(0)),
        });
    }
    all
}

pub(super) fn assert_linearizable(history: &[Operation<u64>]) {
    match check_history(history, Limits::default()) {
        Verdict::Linearizable { operations, .. } => assert_eq!(operations, history.len()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn words_are_linearizable_over_a_network_that_loses_doubles_and_reorders() {
    let mut rack = Processes::start_on(3, true);
    let history = history(&mut rack, 300, |_| {});
    assert_linearizable(&history);
}

#[test]
fn words_are_linearizable_where_reads_are_done_where_the_block_is() {
    let mut rack = Processes::start_peeking(3);
    let history = history(&mut rack, 300, |_| {});
    let peeked: u64 = rack.nodes.iter().map(|node| node.counters().protocol().peeked).sum();
    assert!(peeked > 0, "no read was");
    assert_linearizable(&history);
}

#[test]
fn words_are_linearizable_while_the_switch_is_killed_and_restarted() {
    let mut rack = Processes::start_on(3, true);
    let history = history(&mut rack, 300, |rack| {
        for _ in 0..2 {
            thread::sleep(Duration::from_millis(300));
            rack.restart_switch();
        }
    });
    assert_linearizable(&history);
}
