//! Locks that carry their data, between processes; also over a network that loses, doubles and reorders.

use rackmem::{Discipline, Error, Locked, NodeId};

use crate::networked::rig::{Processes, until};

/// Threads of all nodes count, and look whether what they read is whole.
fn count(rack: &Processes, home: u16, threads: u64, times: u64) {
    let counter = Locked::new(&mut rack.nodes[0].here(), NodeId(home), [0_u64; 20]).unwrap();
    std::thread::scope(|scope| {
        for node in &rack.nodes {
            for _ in 0..threads {
                let addr = counter.addr();
                scope.spawn(move || {
                    let mut here = node.here();
                    let counter = Locked::<[u64; 20]>::at(&here, addr).unwrap();
                    for _ in 0..times {
                        counter.write(&mut here).unwrap().iter_mut().for_each(|word| *word += 1);
                        let seen = *counter.read(&mut here).unwrap();
                        assert!(seen.iter().all(|word| *word == seen[0]), "{seen:?}");
                    }
                });
            }
        }
    });
    let all = rack.nodes.len() as u64 * threads * times;
    assert_eq!(*counter.read(&mut rack.nodes[0].here()).unwrap(), [all; 20]);
}

#[test]
fn a_counter_misses_no_increment_between_processes() {
    count(&Processes::start(3), 1, 2, 100);
}

#[test]
fn a_counter_misses_no_increment_where_messages_are_lost_doubled_and_reordered() {
    count(&Processes::start_on(3, true), 2, 2, 30);
}

#[test]
fn regions_travel_whole_between_processes() {
    let rack = Processes::start(2);
    let (mut here, mut there) = (rack.nodes[0].here(), rack.nodes[1].here());
    for len in [0, 8, 100, 5_000, 65_536] {
        let addr = here.alloc(len.max(1) as u64, NodeId(1), Discipline::Locked).unwrap();
        let lock = here.rwlock(addr, len).unwrap();
        for (at, byte) in lock.write(&mut here).unwrap().iter_mut().enumerate() {
            *byte = (at * 31) as u8;
        }
        let same = there.rwlock(addr, len).unwrap();
        let mut guard = same.write(&mut there).unwrap();
        assert!(guard.iter().enumerate().all(|(at, byte)| *byte == (at * 31) as u8), "{len} bytes");
        guard.reverse();
        drop(guard);
        assert!(
            lock.read(&mut here).unwrap().iter().rev().enumerate().all(|(at, byte)| *byte == (at * 31) as u8)
        );
    }
    let addr = here.alloc(128 << 10, NodeId(1), Discipline::Locked).unwrap();
    let long = here.rwlock(addr, 128 << 10).err();
    assert_eq!(
        long,
        Some(Error::RegionTooLong { len: 128 << 10, most: 64 << 10 }),
        "no ring is made for that"
    );
}

#[test]
fn a_switch_that_is_restarted_forgets_no_lock() {
    let mut rack = Processes::start(3);
    let mut first = rack.nodes[0].here();
    let values: Vec<Locked<u64>> =
        (0..10).map(|at| Locked::new(&mut first, NodeId(at % 3), u64::from(at)).unwrap()).collect();
    let mut held = values[3].write(&mut first).unwrap();
    rack.restart_switch();
    *held += 100;
    drop(held);
    let mut second = rack.nodes[1].here();
    for (at, value) in (0..).zip(&values) {
        let same = Locked::<u64>::at(&second, value.addr()).unwrap();
        *same.write(&mut second).unwrap() += 1_000;
        assert_eq!(*value.read(&mut first).unwrap(), at + 1_000 + if at == 3 { 100 } else { 0 });
    }
}

#[test]
fn a_lock_that_was_lost_with_its_node_can_be_freed_and_its_memory_be_locked_anew() {
    let mut rack = Processes::start(3);
    let mut first = rack.nodes[0].here();
    let value = Locked::new(&mut first, NodeId(0), 1_u64).unwrap();
    let addr = value.addr();
    {
        let mut third = rack.nodes[2].here();
        *Locked::<u64>::at(&third, addr).unwrap().write(&mut third).unwrap() = 2;
    }
    rack.kill(2);
    let why = until(|| value.read(&mut first).err().and_then(|why| why.failure()));
    assert_eq!(why, Error::Lost { addr });
    value.free(&mut first).unwrap();
    let mut second = rack.nodes[1].here();
    let old = Locked::<u64>::at(&second, addr).unwrap();
    assert_eq!(old.read(&mut second).unwrap_err().failure(), Some(Error::Unallocated { addr }));
    let next = Locked::new(&mut first, NodeId(0), 3_u64).unwrap();
    let same = Locked::<u64>::at(&second, next.addr()).unwrap();
    assert_eq!(*same.read(&mut second).unwrap(), 3);
}

#[test]
fn freed_locks_are_gone_for_everybody_where_messages_are_lost_doubled_and_reordered() {
    let rack = Processes::start_on(3, true);
    let (mut first, mut second) = (rack.nodes[0].here(), rack.nodes[1].here());
    for round in 0..20_u64 {
        let value = Locked::new(&mut first, NodeId(2), round).unwrap();
        let same = Locked::<u64>::at(&second, value.addr()).unwrap();
        *same.write(&mut second).unwrap() += 1;
        assert_eq!(*value.read(&mut first).unwrap(), round + 1);
        let addr = value.addr();
        value.free(&mut first).unwrap();
        assert_eq!(same.read(&mut second).unwrap_err().failure(), Some(Error::Unallocated { addr }));
    }
}
