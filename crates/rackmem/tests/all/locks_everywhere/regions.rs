//! Locks over several regions, which change: on whatever rack.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rackmem::{
    Discipline, Error, LockError, Locked, LockedParts, LockedRegions, Many, NameError, NodeId, RegionsError,
    RegionsReadGuard,
};

use super::{Nodes, on_all};

const ROOM: usize = 4096;

fn contents(guard: &RegionsReadGuard<'_>) -> Vec<Vec<u8>> {
    guard.iter().map(<[u8]>::to_vec).collect()
}

/// A number below this, from a state that is stepped.
fn below(state: &mut u64, most: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % most
}

pub(crate) fn regions_come_and_go_and_grow_and_are_what_they_were_on_every_node(nodes: Nodes<'_>) {
    let mut all: Vec<_> = (0..3).map(nodes).collect();
    let addr = LockedRegions::new(&mut all[0], NodeId(1), ROOM).unwrap().addr();
    let (mut expected, mut state): (Vec<Vec<u8>>, u64) = (Vec::new(), 7);
    for turn in 0..300 {
        let here = &mut all[turn % 3];
        let lock = LockedRegions::at(here, addr, ROOM).unwrap();
        let mut guard = lock.write(here).unwrap();
        let len = below(&mut state, 200) as usize;
        let number = below(&mut state, expected.len() as u64 + 1) as usize;
        let done = match below(&mut state, 4) {
            0 | 1 if number == expected.len() => guard.push(len).map(|_| expected.push(vec![0; len])),
            0 if expected.len() > 8 => guard.remove(number).map(|()| drop(expected.remove(number))),
            1 => guard.resize(number, len).map(|()| expected[number].resize(len, 0)),
            _ => {
                if let Some(region) = guard.get_mut(number) {
                    region.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at + turn) as u8);
                    expected[number].copy_from_slice(region);
                }
                Ok(())
            }
        };
        if let Err(why) = done {
            let fits = matches!(why, RegionsError::NoRoom { needed, room: ROOM } if needed > ROOM);
            assert!(fits || matches!(why, RegionsError::NoSuchRegion { .. }), "{why}");
        }
        drop(guard);
        let there = &mut all[(turn + 1) % 3];
        let lock = LockedRegions::at(there, addr, ROOM).unwrap();
        assert_eq!(contents(&lock.read(there).unwrap()), expected, "turn {turn}");
    }
    assert!(expected.len() > 5, "there was something to see");
}

/// Every region has the version, and there are as many as that says.
pub(crate) fn nobody_sees_regions_of_two_versions(nodes: Nodes<'_>) {
    const TIMES: u64 = 60;
    let addr = LockedRegions::new(&mut nodes(0), NodeId(2), ROOM).unwrap().addr();
    let version = |regions: &[&[u64]]| {
        let version = regions.first().map_or(0, |first| first[0]);
        let count = if version == 0 { 0 } else { 1 + version as usize % 9 };
        assert_eq!(regions.len(), count, "version {version}");
        for (number, region) in regions.iter().enumerate() {
            assert_eq!(region.len(), 1 + (version as usize + number) % 13, "version {version}");
            assert!(region.iter().all(|word| *word == version), "{regions:?}");
        }
        version
    };
    on_all(nodes, 2, |here| {
        let lock = LockedRegions::at(here, addr, ROOM).unwrap();
        for _ in 0..TIMES {
            let mut guard = lock.write(here).unwrap();
            let all: Vec<_> = (0..guard.len()).map(|number| guard.values::<u64>(number).unwrap()).collect();
            let next = version(&all) + 1;
            while guard.len() > 1 + next as usize % 9 {
                guard.remove(0).unwrap();
            }
            while guard.len() < 1 + next as usize % 9 {
                guard.push(8).unwrap();
            }
            for number in 0..guard.len() {
                guard.resize(number, 8 * (1 + (next as usize + number) % 13)).unwrap();
                guard.values_mut::<u64>(number).unwrap().fill(next);
            }
            drop(guard);
            let guard = lock.read(here).unwrap();
            let all: Vec<_> = (0..guard.len()).map(|number| guard.values::<u64>(number).unwrap()).collect();
            assert!(version(&all) >= next);
        }
    });
    let mut here = nodes(1);
    let lock = LockedRegions::at(&here, addr, ROOM).unwrap();
    assert_eq!(lock.read(&mut here).unwrap().values::<u64>(0).unwrap()[0], 6 * TIMES, "and none was lost");
}

pub(crate) fn a_list_that_cannot_be_changed_so_stays_as_it_was(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    let lock = LockedRegions::new(&mut here, NodeId(1), ROOM).unwrap();
    let mut guard = lock.write(&mut here).unwrap();
    (0..LockedRegions::MOST).for_each(|number| assert_eq!(guard.push(8), Ok(number)));
    assert_eq!(guard.push(0), Err(RegionsError::TooMany));
    let room = LockedRegions::MOST * (8 + LockedRegions::ENTRY);
    let more = 8 + ROOM - room;
    assert_eq!(guard.resize(3, more + 1), Err(RegionsError::NoRoom { needed: ROOM + 8, room: ROOM }));
    assert_eq!(
        guard.resize(3, usize::MAX),
        Err(RegionsError::NoRoom { needed: usize::MAX - (4 * 8), room: ROOM })
    );
    let none = RegionsError::NoSuchRegion { number: 64, count: 64 };
    assert_eq!((guard.resize(64, 1), guard.remove(64)), (Err(none), Err(none)));
    assert!(guard.get(64).is_none() && guard.get_mut(64).is_none());
    assert_eq!(guard.values::<u64>(3).map(<[u64]>::len), Some(1));
    assert_eq!(guard.resize(3, more), Ok(()), "that fits");
    assert_eq!(guard.values::<[u8; 16]>(2), None, "no whole number of them");
    drop(guard);
    let mut there = nodes(2);
    let same = LockedRegions::at(&there, lock.addr(), ROOM).unwrap();
    assert_eq!(same.read(&mut there).unwrap().len(), 64);
    // Nobody takes it for something else.
    let as_bytes = there.rwlock(lock.addr(), ROOM + 32).unwrap();
    let refused = as_bytes.read(&mut there).err();
    assert!(matches!(refused, Some(Error::WrongLength { .. })), "{refused:?}");
    let other = Locked::new(&mut here, NodeId(1), [1_u64; 40]).unwrap();
    let wrong = LockedRegions::at(&there, other.addr(), 304).unwrap();
    assert!(wrong.read(&mut there).is_err());
    drop(lock);
    same.free(&mut there).unwrap();
}

pub(crate) fn memory_of_other_locks_is_taken_in_and_given_back(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let lock = LockedRegions::new(&mut here, NodeId(1), ROOM).unwrap();
    let memory = here.alloc(4096, NodeId(2), Discipline::Locked).unwrap();
    for part in [0, 1024] {
        let bytes = there.rwlock(memory + part, 100).unwrap();
        bytes.write(&mut there).unwrap().fill(1 + part as u8);
    }
    let mut guard = lock.write(&mut here).unwrap();
    assert_eq!(guard.take_in(&mut here, memory, 100), Ok(0));
    assert_eq!(guard.take_in(&mut here, memory + 1024, 100), Ok(1));
    assert_eq!(
        guard.take_in(&mut here, memory + 96, 8),
        Err(RegionsError::Overlaps { addr: memory }),
        "part of it is guarded already"
    );
    let blocks = here.alloc(64, NodeId(1), Discipline::Coherent).unwrap();
    let refused = guard.take_in(&mut here, blocks, 64);
    assert!(matches!(refused, Err(RegionsError::Failed(Error::WrongDiscipline { .. }))), "{refused:?}");
    drop(guard);
    let same = LockedRegions::at(&there, lock.addr(), ROOM).unwrap();
    let mut guard = same.write(&mut there).unwrap();
    assert_eq!(contents_of(&guard), [vec![1; 100], vec![1; 100]]);
    assert_eq!((guard.taken_from(0), guard.taken_from(1)), (Some(memory), Some(memory + 1024)));
    guard.get_mut(0).unwrap().fill(9);
    assert_eq!(guard.resize(0, 200), Err(RegionsError::HasMemory { number: 0 }), "its memory has 100 bytes");
    assert_eq!(guard.replace(&[b"other"]), Err(RegionsError::HasMemory { number: 0 }), "nor is it forgotten");
    guard.give_back(&mut there, 0).unwrap();
    let made = guard.push(4).unwrap();
    assert_eq!(guard.give_back(&mut there, made), Err(RegionsError::HasNoMemory { number: made }));
    drop(guard);
    let bytes = here.rwlock(memory, 100).unwrap();
    assert!(bytes.read(&mut here).unwrap().iter().all(|byte| *byte == 9), "as they were left");
    // Freed while it is guarded: the lock has the bytes still, and cannot give them back.
    bytes.end(&mut here).unwrap();
    here.free(memory).unwrap();
    let mut guard = lock.write(&mut here).unwrap();
    let refused = guard.give_back(&mut here, 0);
    assert!(matches!(refused, Err(RegionsError::Failed(Error::Unallocated { .. }))), "{refused:?}");
    assert_eq!(guard.get(0), Some(&[1; 100][..]));
    guard.remove(0).unwrap();
}

fn contents_of(guard: &rackmem::RegionsWriteGuard<'_>) -> Vec<Vec<u8>> {
    guard.iter().map(<[u8]>::to_vec).collect()
}

pub(crate) fn a_panic_while_regions_change_poisons_them(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let lock = LockedRegions::new(&mut here, NodeId(0), ROOM).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = lock.write(&mut here).unwrap();
        guard.push(8).unwrap();
        panic!("in the middle");
    }));
    assert!(panicked.is_err());
    let same = LockedRegions::at(&there, lock.addr(), ROOM).unwrap();
    assert_eq!(same.read(&mut there).err(), Some(LockError::Poisoned { addr: lock.addr() }));
    let mut guard = same.write_poisoned(&mut there).unwrap();
    let before = guard.fence();
    guard.remove(0).unwrap();
    drop(guard);
    let guard = lock.write(&mut here).unwrap();
    assert!(guard.is_empty() && guard.fence() > before);
}

/// A lock's parts: a version, a row for each of its units, and the sum of the row.
type Sums = (u64, Many<[u32; 2]>, [u32; 2]);

pub(crate) fn parts_are_of_one_version_and_what_their_types_say_on_every_node(nodes: Nodes<'_>) {
    const TIMES: u32 = 40;
    let (mut here, mut there) = (nodes(0), nodes(1));
    let lock = here.named::<LockedParts<Sums>>("sums").open_or(|| (ROOM, (7, Many(vec![]), [0, 0]))).unwrap();
    let sum = |rows: &[[u32; 2]]| rows.iter().fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
    on_all(nodes, 1, |handle| {
        let lock = handle.named::<LockedParts<Sums>>("sums").open().unwrap();
        for turn in 0..TIMES {
            let mut guard = lock.write(handle).unwrap();
            let rows = guard.get().1.len();
            guard.resize(1, rows + 1).unwrap();
            let (version, rows, sums) = guard.get_mut();
            assert_eq!(rows.last(), Some(&[0, 0]), "what is new is zeroes");
            rows[turn as usize % rows.len()] = [turn, 1];
            (*version, *sums) = (*version + 1, sum(rows));
            drop(guard);
            let guard = lock.read(handle).unwrap();
            let (version, rows, sums) = guard.get();
            assert_eq!((*version, *sums), (7 + rows.len() as u64, sum(rows)));
        }
    });
    let guard = lock.read(&mut here).unwrap();
    assert_eq!((*guard.get().0, guard.get().1.len()), (7 + 3 * u64::from(TIMES), 3 * TIMES as usize));
    drop(guard);
    let mut guard = lock.write(&mut here).unwrap();
    assert_eq!(guard.resize(0, 2), Err(RegionsError::IsOne { number: 0 }));
    assert_eq!(guard.resize(3, 2), Err(RegionsError::NoSuchRegion { number: 3, count: 3 }));
    assert!(matches!(guard.resize(1, usize::MAX), Err(RegionsError::NoRoom { room: ROOM, .. })));
    guard.resize(1, 1).unwrap();
    assert_eq!(guard.get().1.len(), 1);
    let found = there.named::<LockedParts<Sums>>("sums").open().unwrap();
    assert!(found.read_timeout(&mut there, Duration::ZERO).unwrap().is_none(), "somebody writes");
    assert!(found.write_timeout(&mut there, Duration::ZERO).unwrap().is_none());
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        *guard.get_mut().0 = 0;
        panic!("in the middle");
    }));
    assert!(panicked.is_err());
    assert_eq!(found.read(&mut there).err(), Some(LockError::Poisoned { addr: lock.addr() }));
    let guard = found.write_poisoned(&mut there).unwrap();
    assert!((*guard.get().0, guard.get().1.len()) == (0, 1) && guard.fence() > 0);
    drop(guard);
    // By its address, somebody may mean something else: less, more, or longer.
    let broken = LockError::Failed(Error::Broken { addr: lock.addr() });
    let fewer = LockedParts::<(u64, Many<[u32; 2]>)>::at(&there, lock.addr(), ROOM).unwrap();
    assert_eq!(fewer.read(&mut there).err(), Some(broken));
    let more = LockedParts::<(u64, Many<u64>, u64, u64)>::at(&there, lock.addr(), ROOM).unwrap();
    assert_eq!(more.write(&mut there).err(), Some(broken));
    let longer = LockedParts::<([u64; 2], Many<u64>, u64)>::at(&there, lock.addr(), ROOM).unwrap();
    assert_eq!(longer.read(&mut there).err(), Some(broken));
    assert!(matches!(there.named::<LockedParts<(u64,)>>("sums").open(), Err(NameError::Differs { .. })));
    // What it is to begin with does not fit.
    let large = LockedParts::new(&mut here, NodeId(1), 64, &(Many(vec![0_u64; 7]),));
    assert!(matches!(large.err(), Some(Error::BadSize { .. })));
    here.remove_name("sums").unwrap();
}

pub(crate) fn regions_with_a_name_are_found_with_their_room_and_go_with_it(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let lock = here.named::<LockedRegions>("regions").open_or(|| 1000).unwrap();
    lock.write(&mut here).unwrap().push_values(&[7_u64; 9]).unwrap();
    let same = there.named::<LockedRegions>("regions").open().unwrap();
    assert_eq!((same.room(), lock.room()), (1000, 1000));
    assert_eq!(same.read(&mut there).unwrap().values::<u64>(0), Some(&[7; 9][..]));
    let other = there.named::<Locked<[u64; 2]>>("regions").open();
    assert!(other.is_err(), "it is of another type");
    here.remove_name("regions").unwrap();
    assert!(matches!(same.read(&mut there), Err(LockError::Failed(_))));
}
