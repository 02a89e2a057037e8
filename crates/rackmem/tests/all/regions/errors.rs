//! What words and objects refuse, and what is said about it.

use rackmem::{ByteObjects, Discipline, Error, GlobalAddr, Locked, ReadError, Retry};

use crate::regions::{node, rack};

const ALL: [Discipline; 5] =
    [Discipline::Coherent, Discipline::LockOnly, Discipline::Locked, Discipline::Word, Discipline::Object];

#[test]
fn an_address_obeys_its_own_discipline_only() {
    let rack = rack(2);
    let mut here = rack.node(node(0));
    for discipline in ALL {
        let addr = here.alloc(64, node(1), discipline).unwrap();
        let refused = |needs| Error::WrongDiscipline { addr, needs };
        let words = here.words_at::<u64>(addr).err();
        assert_eq!(words, (discipline != Discipline::Word).then_some(refused(Discipline::Word)));
        let objects = here.byte_objects_at(addr).err();
        assert_eq!(objects, (discipline != Discipline::Object).then_some(refused(Discipline::Object)));
        let read = here.read_word(addr).err();
        assert_eq!(read, (discipline != Discipline::Coherent).then_some(refused(Discipline::Coherent)));
        let write = here.write_word(addr, 1).err();
        assert_eq!(write, (discipline != Discipline::Coherent).then_some(refused(Discipline::Coherent)));
        let locked = Locked::<u64>::at(&here, addr).unwrap();
        let locked = locked.read(&mut here).err().and_then(|why| why.failure());
        assert_eq!(locked, (discipline != Discipline::Locked).then_some(refused(Discipline::Locked)));
    }
}

#[test]
fn freed_words_are_refused_by_everybody_also_when_their_memory_is_used_anew() {
    let rack = rack(2);
    let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
    // In a block with others, which stay.
    let neighbour = here.words::<u64>(2, node(1)).unwrap();
    let words = here.words::<u64>(2, node(1)).unwrap();
    let (addr, other) = (words.addr(), there.words_at::<u64>(words.addr()).unwrap());
    words.fetch_add(&mut here, 1, 5).unwrap();
    words.free(&mut there).unwrap();
    let gone = Error::Unallocated { addr };
    assert_eq!(other.fetch_add(&mut there, 0, 1), Err(gone));
    assert_eq!(other.add(&mut there, 0, 1), Err(gone));
    assert_eq!(there.words_at::<u64>(addr).err(), Some(gone));
    assert_eq!(other.clone().free(&mut here), Err(Error::NotAnAllocation { addr }));
    let again = here.words::<u64>(2, node(1)).unwrap();
    assert_eq!(again.addr(), addr, "the memory is used anew");
    assert_eq!(again.load(&mut here, 1), Ok(0), "words begin with zero");
    assert_eq!(other.load(&mut there, 1), Err(gone));
    assert_eq!(neighbour.load(&mut here, 0), Ok(0));
}

#[test]
fn freed_objects_are_refused_by_everybody_also_when_their_memory_is_used_anew() {
    let rack = rack(2);
    let (mut here, mut there) = (rack.node(node(0)), rack.node(node(1)));
    let objects = here.objects::<[u64; 4]>(2, node(0)).unwrap();
    let (addr, other) = (objects.addr(), there.objects_at::<[u64; 4]>(objects.addr()).unwrap());
    objects.write(&mut here, 1, &[7; 4]).unwrap();
    objects.free(&mut here).unwrap();
    let gone = Error::Unallocated { addr };
    let again = here.objects::<[u64; 4]>(2, node(0)).unwrap();
    assert_eq!(again.addr(), addr, "the memory is used anew");
    assert_eq!(other.read(&mut there, 1, Retry::Forever), Err(ReadError::Failed(gone)));
    assert_eq!(other.write(&mut there, 1, &[1; 4]), Err(gone));
    assert_eq!(again.read(&mut there, 1, Retry::Never), Ok([0; 4]));
    again.free(&mut there).unwrap();
    assert_eq!(here.objects_at::<[u64; 4]>(addr).err(), Some(gone));
}

#[test]
fn what_is_beyond_the_end_is_refused() {
    let rack = rack(2);
    let mut here = rack.node(node(0));
    let words = here.words::<u64>(5, node(1)).unwrap();
    let beyond = |index, count| Error::OutOfBounds { index, count };
    for index in [5, 6, usize::MAX] {
        assert_eq!(words.fetch_add(&mut here, index, 1), Err(beyond(index, 5)));
    }
    let halves = here.words_at::<u32>(words.addr()).unwrap();
    assert_eq!(halves.fetch_add(&mut here, 10, 1), Err(beyond(10, 10)));
    let objects = here.byte_objects(3, 10, node(1)).unwrap();
    let mut ten = [0; 10];
    for index in [3, usize::MAX] {
        assert_eq!(
            objects.read(&mut here, index, &mut ten, Retry::Never),
            Err(ReadError::Failed(beyond(index, 3)))
        );
        assert_eq!(objects.write(&mut here, index, 0, &ten), Err(beyond(index, 3)));
    }
    let addr = objects.addr();
    assert_eq!(
        objects.read(&mut here, 0, &mut [0; 11], Retry::Never),
        Err(ReadError::Failed(Error::WrongLength { addr, len: 11 }))
    );
    for (at, len) in [(1, 10), (10, 1), (usize::MAX, 2)] {
        let refused = objects.write(&mut here, 0, at, &vec![0; len]);
        assert_eq!(refused, Err(Error::OutOfRange { addr, len: len as u64 }));
    }
    assert_eq!(here.objects_at::<[u8; 12]>(addr).err(), Some(Error::WrongLength { addr, len: 12 }));
}

#[test]
fn what_is_no_allocation_is_refused_with_what_is_wrong() {
    let rack = rack(2);
    let mut here = rack.node(node(0));
    let words = here.words::<u64>(600, node(1)).unwrap();
    for inside in [8, 4096, 4792] {
        let addr = words.addr() + inside;
        assert_eq!(here.words_at::<u64>(addr).err(), Some(Error::NotAnAllocation { addr }));
    }
    let never = GlobalAddr::new(node(1), 4 << 20);
    assert_eq!(here.words_at::<u64>(never).err(), Some(Error::Unallocated { addr: never }));
    let nowhere = GlobalAddr::new(node(9), 4096);
    assert_eq!(here.words_at::<u64>(nowhere).err(), Some(Error::NoSuchNode { addr: nowhere, nodes: 2 }));
    let most = (8 << 20) - 4096;
    assert_eq!(here.words::<u64>(0, node(0)).err(), Some(Error::BadSize { len: 0, most }));
    let long = here.words::<u64>(1 << 20, node(0)).err();
    assert_eq!(long, Some(Error::BadSize { len: 8 << 20, most }));
    let countless = here.words::<u64>(usize::MAX, node(0)).err();
    assert_eq!(countless, Some(Error::BadSize { len: u64::MAX, most }));
    assert_eq!(here.byte_objects(0, 8, node(0)).err(), Some(Error::BadSize { len: 0, most }));
    let longest = ByteObjects::LONGEST as u64;
    assert_eq!(here.byte_objects(1, 0, node(0)).err(), Some(Error::BadSize { len: 0, most: longest }));
    let too_long = here.byte_objects(1, (1 << 20) + 1, node(0)).err();
    assert_eq!(too_long, Some(Error::BadSize { len: longest + 1, most: longest }));
    assert!(here.byte_objects(1, 1 << 20, node(0)).is_ok());
    assert!(matches!(here.alloc(0, node(0), Discipline::Word), Err(Error::BadSize { len: 0, .. })));
    assert!(matches!(here.alloc(0, node(0), Discipline::Object), Err(Error::BadSize { len: 0, .. })));
}
