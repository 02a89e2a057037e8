//! `Config::own_first`: how many threads of the node that has a lock go before another node that waits.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use rackmem::{Config, Locked, Rack};

use super::{config, node, rack_with};

const OWN: usize = 3;
/// The largest number that is tried.
const MOST: usize = 8;

/// Waits until so many threads of a node wait for the lock, and stand in its queue.
fn until_waiting(rack: &Rack, number: u16, threads: u64) {
    let is_so =
        || rack.watched_locks().iter().any(|(id, lock)| *id == node(number) && lock.waiting == threads);
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "node {number} has not {threads} that wait");
        thread::yield_now();
    }
    // They are counted a moment before they ask.
    thread::sleep(Duration::from_millis(50));
}

/// Node 0 has the lock, node 1 asks, then threads of node 0 ask, again and again. How many of these get in before node 1.
fn own_before_the_other(own_first: u32) -> usize {
    let rack = rack_with(Config { own_first, ..config() });
    let mut here = rack.node(node(0));
    let lock = here.named::<Locked<u64>>("hot").open_or(|| 0).unwrap();
    let (entered, other_is_in) = (Mutex::new(0), AtomicBool::new(false));
    let held = lock.write(&mut here).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut there = rack.node(node(1));
            let lock = there.named::<Locked<u64>>("hot").open().unwrap();
            let _held = lock.write(&mut there).unwrap();
            other_is_in.store(true, SeqCst);
        });
        until_waiting(&rack, 1, 1);
        for _ in 0..OWN {
            scope.spawn(|| {
                let mut here = rack.node(node(0));
                let lock = here.named::<Locked<u64>>("hot").open().unwrap();
                loop {
                    let _held = lock.write(&mut here).unwrap();
                    let mut entered = entered.lock().unwrap();
                    if other_is_in.load(SeqCst) || *entered > 2 * MOST {
                        break;
                    }
                    *entered += 1;
                    drop(entered);
                    // So that the others of this node ask again meanwhile.
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        until_waiting(&rack, 0, OWN as u64);
        drop(held);
    });
    rack.check_invariants();
    entered.into_inner().unwrap()
}

#[test]
fn another_node_waits_for_as_many_own_threads_as_were_allowed_and_no_more() {
    for own_first in [0, 1, 2, MOST as u32] {
        assert_eq!(own_before_the_other(own_first), own_first as usize, "own_first = {own_first}");
    }
}
