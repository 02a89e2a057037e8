//! Writers are alone, readers see whole values, and what was written is what is read.

use std::sync::atomic::Ordering;

use rackmem::{Discipline, Locked, NodeId, Rack};

use crate::locks::{node, rack, racks};

/// Every thread of every node adds so often to a counter; the sum has to be exact.
fn count(rack: &Rack, nodes: u16, threads: u64, times: u64) {
    let counter = Locked::new(&mut rack.node(node(0)), node(nodes - 1), 0_u64).unwrap();
    std::thread::scope(|scope| {
        for id in 0..nodes {
            for _ in 0..threads {
                let (mut handle, counter) = (rack.node(NodeId(id)), &counter);
                scope.spawn(move || {
                    for _ in 0..times {
                        *counter.write(&mut handle).unwrap() += 1;
                    }
                });
            }
        }
    });
    assert_eq!(*counter.read(&mut rack.node(node(0))).unwrap(), u64::from(nodes) * threads * times);
    rack.check_invariants();
}

#[test]
fn a_counter_misses_no_increment_on_one_node() {
    for rack in racks(1) {
        count(&rack, 1, 4, 5_000);
    }
}

#[test]
fn a_counter_misses_no_increment_on_several_nodes() {
    for rack in racks(3) {
        count(&rack, 3, 2, 1_000);
    }
}

#[test]
fn many_more_threads_than_cores_lose_no_wake_up() {
    count(&rack(8), 8, 8, 50);
}

#[test]
fn streams_of_readers_and_of_writers_both_go_on() {
    // Readers that overlap all the time, and writers that do: each side gets so many turns beside the other.
    let rack = rack(2);
    let value = Locked::new(&mut rack.node(node(0)), node(0), [0_u64; 2]).unwrap();
    let turns = std::array::from_fn::<_, 2, _>(|_| std::sync::atomic::AtomicU64::new(0));
    let enough = |side: usize| turns[side].load(Ordering::Relaxed) >= 500;
    std::thread::scope(|scope| {
        for thread in 0..6_u16 {
            let (mut handle, value, turns) = (rack.node(NodeId(thread % 2)), &value, &turns);
            scope.spawn(move || {
                let side = usize::from(thread < 2);
                while !(enough(0) && enough(1)) {
                    if side == 1 {
                        value.write(&mut handle).unwrap()[0] += 1;
                    } else {
                        assert_eq!(value.read(&mut handle).unwrap()[1], 0);
                    }
                    turns[side].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
}

#[test]
fn regions_of_any_size_travel_whole() {
    for rack in racks(2) {
        for len in [0, 1, 7, 8, 64, 100, 4096, 5000, 65_536, 1 << 20] {
            let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
            let addr = here.alloc(len.max(1) as u64, node(1), Discipline::Locked).unwrap();
            let lock = here.rwlock(addr, len).unwrap();
            for (round, handle) in [&mut here, &mut there].into_iter().enumerate() {
                let mut guard = lock.write(handle).unwrap();
                assert_eq!(guard.len(), len);
                for (at, byte) in guard.iter_mut().enumerate() {
                    let before = (at as u8).wrapping_mul(31);
                    assert!(round == 0 || *byte == before, "{len} bytes, byte {at}");
                    *byte = before.wrapping_add(round as u8);
                }
            }
            let read = lock.read(&mut here).unwrap();
            assert!(
                read.iter()
                    .enumerate()
                    .all(|(at, byte)| *byte == (at as u8).wrapping_mul(31).wrapping_add(1))
            );
        }
        rack.check_invariants();
    }
}
