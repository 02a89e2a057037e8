//! What cannot be locked, and what is said about it.

use rackmem::{Discipline, Error, GlobalAddr, Locked};

use crate::locks::{node, racks};

#[test]
fn a_region_that_leaves_the_memory_of_its_node_is_refused() {
    let [rack, _] = racks(2);
    let here = rack.node(node(0));
    let last = GlobalAddr::new(node(1), (8 << 20) - 8);
    assert_eq!(here.rwlock(last, 16).err(), Some(Error::OutOfRange { addr: last, len: 16 }));
    let never = GlobalAddr::new(node(1), 4 << 20);
    let (len, most) = ((1 << 20) + 1, 1 << 20);
    assert_eq!(here.rwlock(never, len as usize).err(), Some(Error::RegionTooLong { len, most }));
}

#[test]
fn a_region_that_reaches_beyond_its_allocation_is_refused() {
    for rack in racks(2) {
        let mut here = rack.node(node(0));
        let addr = here.alloc(8192, node(1), Discipline::Locked).unwrap();
        let lock = here.rwlock(addr, 64 << 10).unwrap();
        assert_eq!(lock.read(&mut here).err(), Some(Error::Unallocated { addr }));
    }
}

#[test]
fn a_freed_lock_is_gone_for_everybody_and_its_memory_can_be_locked_anew() {
    for rack in racks(2) {
        let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
        for round in 0..50_u64 {
            let value = Locked::new(&mut here, node(1), [round; 3]).unwrap();
            let other = Locked::<[u64; 3]>::at(&there, value.addr()).unwrap();
            assert_eq!(*other.read(&mut there).unwrap(), [round; 3]);
            let addr = value.addr();
            value.free(&mut here).unwrap();
            // Other allocations may live in the same block, and a lock that is none starts with zeroes or old bytes.
            let shorter = Locked::new(&mut here, node(1), round).unwrap();
            assert_eq!(*shorter.read(&mut there).unwrap(), round);
            shorter.free(&mut there).unwrap();
            assert_eq!(other.read(&mut there).unwrap_err().failure(), Some(Error::Unallocated { addr }));
        }
        rack.check_invariants();
    }
}
