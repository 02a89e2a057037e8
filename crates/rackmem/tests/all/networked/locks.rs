//! Locks that carry their data, between processes; also over a network that loses, doubles and reorders.

use rackmem::{Discipline, Error, Locked, NodeId};

use crate::locks_everywhere::{Nodes, everywhere};
use crate::networked::rig::{Processes, until};

fn both(body: fn(Nodes<'_>)) {
    for faulty in [false, true] {
        let rack = Processes::start_on(3, faulty);
        body(&|node| rack.nodes[usize::from(node)].here());
    }
}

everywhere!(both);

#[test]
fn a_region_that_no_message_carries_is_refused() {
    let rack = Processes::start(2);
    let mut here = rack.nodes[0].here();
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
