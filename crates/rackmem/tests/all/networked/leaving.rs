//! Nodes that leave in order, several at once and while others work: they take nothing with them but their own memory.
//!
//! `RACKMEM_RUNS=N` does it so many times.

use std::time::Duration;

use rackmem::{Config, Discipline, Locked, Nanos, NodeHandle, NodeId};

use super::rig::Processes;

/// What each node does before it leaves.
const EACH: u64 = 30;

/// Nodes 2 and 3 work, leave, and come back; the first two stay, and one of them works, too. What it came to is looked at after
/// each round.
fn come_and_go(
    work: impl Fn(&mut NodeHandle) + Sync,
    look: impl Fn(&mut NodeHandle) -> u64,
    rack: &mut Processes,
) {
    let rounds: u64 = std::env::var("RACKMEM_RUNS").map_or(5, |runs| runs.parse().unwrap());
    for round in 1..=rounds {
        std::thread::scope(|scope| {
            for (id, node) in rack.nodes.iter().enumerate().skip(1) {
                let work = &work;
                scope.spawn(move || {
                    let mut here = node.here();
                    (0..EACH).for_each(|_| work(&mut here));
                    assert!(id == 1 || node.leave(Duration::from_secs(20)), "everything has gone home");
                });
            }
        });
        assert_eq!(look(&mut rack.nodes[0].here()), round * 3 * EACH);
        (2..4).for_each(|node| rack.rejoin(node));
    }
}

fn rack(faulty: bool) -> Processes {
    let memory = 4 << 20;
    let shape = Config { nodes: 4, memory, cache: memory, name_nodes: Some(2), ..Config::default() };
    // Nobody dies here: who is taken for dead on a busy machine would take along what it has.
    Processes::start_patient(faulty, shape, Nanos::from_millis(2_000))
}

#[test]
fn what_a_lock_guards_stays() {
    for faulty in [false, true] {
        let mut rack = rack(faulty);
        rack.nodes[0].here().named::<Locked<u64>>("quota").open_or(|| 0).unwrap();
        let quota = |here: &mut NodeHandle| here.named::<Locked<u64>>("quota").open().unwrap();
        let work = |here: &mut NodeHandle| {
            let quota = quota(here);
            *quota.write(here).unwrap() += 1;
            assert!(*quota.read(here).unwrap() > 0);
        };
        come_and_go(work, |here| *quota(here).read(here).unwrap(), &mut rack);
    }
}

#[test]
fn what_was_changed_in_blocks_stays() {
    for faulty in [false, true] {
        let mut rack = rack(faulty);
        let addr = rack.nodes[0].here().alloc(4096, NodeId(1), Discipline::Coherent).unwrap();
        let work = |here: &mut NodeHandle| {
            here.update(addr, 8, |word| word.set_word(0, word.word(0) + 1)).unwrap();
            assert!(here.read_word(addr).unwrap() > 0);
        };
        come_and_go(work, |here| here.read_word(addr).unwrap(), &mut rack);
    }
}
