//! The per-block reader-writer lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rackmem::{Config, Directory, Discipline, Error, LockMode, NodeId, Rack};

fn rack(directory: Directory) -> Rack {
    Rack::embedded(Config { nodes: 3, directory, cache: 1 << 20, memory: 4 << 20, ..Config::default() })
        .unwrap()
}

#[test]
fn the_holder_can_access_the_block_that_it_locked() {
    let rack = rack(Directory::Home);
    let (mut node, mut other) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
    let addr = node.alloc(8, NodeId(2), Discipline::Coherent).unwrap();
    let lock = node.lock_block(addr, LockMode::Write).unwrap();
    node.write_word(addr, 5).unwrap();
    assert_eq!(
        other.read_word(addr),
        Ok(5),
        "the lock is a convention: it excludes lock holders, not accesses"
    );
    node.write_word(addr, 6).unwrap();
    drop(lock);
}

#[test]
fn a_section_under_the_write_lock_is_never_entered_twice() {
    let rack = rack(Directory::Auto);
    let addr = rack.node(NodeId(0)).alloc(8, NodeId(1), Discipline::LockOnly).unwrap();
    let (inside, rounds) = (AtomicU64::new(0), 300);
    thread::scope(|scope| {
        for thread in 0..6 {
            let (mut node, inside) = (rack.node(NodeId(thread % 3)), &inside);
            scope.spawn(move || {
                for _ in 0..rounds {
                    let lock = node.lock_block(addr, LockMode::Write).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two threads are inside");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(lock);
                }
            });
        }
    });
    rack.check_invariants();
}

#[test]
fn more_locks_than_a_node_can_hold_are_an_error_and_misses_still_work() {
    let rack = rack(Directory::Home);
    let mut node = rack.node(NodeId(0));
    let addr = node.alloc(100 * 4096, NodeId(1), Discipline::Coherent).unwrap();
    let mut held = Vec::new();
    let error = loop {
        match node.lock_block(addr + 4096 * held.len() as u64, LockMode::Write) {
            Ok(lock) => held.push(lock),
            Err(error) => break error,
        }
    };
    assert_eq!(error, Error::TooManyLocks { most: held.len() });
    assert!(held.len() >= 16);
    node.write_word(addr, 1).unwrap();
    held.pop();
    assert!(node.lock_block(addr + 4096 * 99, LockMode::Read).is_ok());
}
