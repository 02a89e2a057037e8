//! What cannot be locked, and what is said about it.

use rackmem::{Discipline, Error, GlobalAddr, Locked};

use crate::locks::{node, racks};

#[test]
fn what_is_no_lock_is_refused_with_what_is_wrong() {
    for rack in racks(2) {
        let mut here = rack.node(node(0));
        let coherent = here.alloc(64, node(1), Discipline::Coherent).unwrap();
        let never = GlobalAddr::new(node(1), 4 << 20);
        let mut refused = |addr| here.rwlock(addr, 8).unwrap().write(&mut here).err();
        assert_eq!(
            refused(coherent),
            Some(Error::WrongDiscipline { addr: coherent, needs: Discipline::Locked })
        );
        assert_eq!(refused(never), Some(Error::Unallocated { addr: never }));
        assert_eq!(
            here.rwlock(GlobalAddr::new(node(9), 64), 8).err(),
            Some(Error::NoSuchNode { addr: GlobalAddr::new(node(9), 64), nodes: 2 })
        );
        let odd = GlobalAddr::new(node(1), 4097);
        assert_eq!(here.rwlock(odd, 8).err(), Some(Error::Unaligned { addr: odd }));
        assert_eq!(
            here.rwlock(never, (1 << 20) + 1).err(),
            Some(Error::RegionTooLong { len: (1 << 20) + 1, most: 1 << 20 })
        );
        let last = GlobalAddr::new(node(1), (8 << 20) - 8);
        assert_eq!(here.rwlock(last, 16).err(), Some(Error::OutOfRange { addr: last, len: 16 }));
    }
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
fn a_lock_has_one_length() {
    for rack in racks(2) {
        let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
        let value = Locked::new(&mut here, node(0), [1_u64; 4]).unwrap();
        let addr = value.addr();
        for handle in [&mut here, &mut there] {
            let other = Locked::<[u64; 5]>::at(handle, addr).unwrap();
            assert_eq!(other.read(handle).unwrap_err().failure(), Some(Error::WrongLength { addr, len: 48 }));
        }
        assert_eq!(*value.read(&mut there).unwrap(), [1; 4]);
    }
}

#[test]
fn plain_accesses_to_a_locked_region_are_refused() {
    let [rack, _] = racks(2);
    let mut here = rack.node(node(0));
    let value = Locked::new(&mut here, node(1), 1_u64).unwrap();
    let addr = value.addr();
    assert_eq!(here.read_word(addr), Err(Error::WrongDiscipline { addr, needs: Discipline::Coherent }));
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
