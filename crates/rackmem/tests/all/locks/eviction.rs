//! More locks than a node has capacity for.

use rackmem::{Config, Locked, NodeHandle};

use crate::locks::{config, node, rack_with};

/// Capacity for a handful of copies.
fn crowded() -> Config {
    Config { nodes: 2, lock_copies: 4 << 10, ..config() }
}

#[test]
fn values_survive_the_eviction_of_their_copies() {
    let rack = rack_with(crowded());
    let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
    let values: Vec<Locked<[u64; 30]>> =
        (0..200).map(|at| Locked::new(&mut here, node(at % 2), [u64::from(at); 30]).unwrap()).collect();
    for round in 0..3 {
        for (at, value) in (0..).zip(&values) {
            let handle = if (at + round) % 3 == 0 { &mut there } else { &mut here };
            let mut guard = value.write(handle).unwrap();
            assert_eq!(*guard, [at + round * 1_000; 30], "value {at} in round {round}");
            *guard = [at + (round + 1) * 1_000; 30];
        }
        for (at, value) in (0..).zip(&values) {
            assert_eq!(*value.read(&mut there).unwrap(), [at + (round + 1) * 1_000; 30]);
        }
    }
    rack.check_invariants();
}

/// Of two lengths: a slot that somebody has just left may be another lock's a moment later, with more words elsewhere.
#[test]
fn threads_that_evict_each_others_locks_all_go_on() {
    fn turn<const N: usize>(value: &Locked<[u64; N]>, handle: &mut NodeHandle, writes: bool) {
        if writes {
            value.write(handle).unwrap().iter_mut().for_each(|word| *word += 1);
        } else {
            let seen = *value.read(handle).unwrap();
            assert!(seen.iter().all(|word| *word == seen[0]), "{seen:?}");
        }
    }
    let rack = rack_with(crowded());
    let mut here = rack.node(node(0));
    let short: Vec<Locked<[u64; 30]>> =
        (0..64).map(|at| Locked::new(&mut here, node(at % 2), [0; 30]).unwrap()).collect();
    let long: Vec<Locked<[u64; 200]>> =
        (0..8).map(|at| Locked::new(&mut here, node(at % 2), [0; 200]).unwrap()).collect();
    std::thread::scope(|scope| {
        for thread in 0..4_u16 {
            let (mut handle, short, long) = (rack.node(node(thread % 2)), &short, &long);
            scope.spawn(move || {
                for step in 0..2_000 {
                    let at = step * 7 + usize::from(thread) * 13;
                    if step % 5 == 0 {
                        turn(&long[at % long.len()], &mut handle, step % 4 == 0);
                    } else {
                        turn(&short[at % short.len()], &mut handle, step % 4 == 0);
                    }
                }
            });
        }
    });
    let short: u64 = short.iter().map(|value| value.read(&mut here).unwrap()[29]).sum();
    let long: u64 = long.iter().map(|value| value.read(&mut here).unwrap()[199]).sum();
    assert_eq!((short, long), (4 * 400, 4 * 100));
    rack.check_invariants();
}

#[test]
fn a_thread_may_hold_more_locks_than_there_is_room_for() {
    let rack = rack_with(crowded());
    let mut here = rack.node(node(0));
    let values: Vec<Locked<[u64; 30]>> =
        (0..100).map(|_| Locked::new(&mut here, node(1), [0; 30]).unwrap()).collect();
    let mut guards: Vec<_> = values.iter().map(|value| value.write(&mut here).unwrap()).collect();
    guards.iter_mut().for_each(|guard| guard[29] = 7);
    drop(guards);
    assert!(values.iter().all(|value| value.read(&mut here).unwrap()[29] == 7));
}
