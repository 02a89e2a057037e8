//! Regions of a lock behind pointers: what whoever holds it sees there, and what happens to others.
//!
//! Unsafe code: pointers are followed.
#![allow(unsafe_code)]

use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use rackmem::{
    Config, Discipline, Error, GlobalAddr, LockError, LockedRegions, MapError, MappedRegions, NodeHandle,
    NodeId, Rack, RegionsReadGuard,
};
use random::Random;

use super::super::rig::{Processes, until};
use super::PAGE;

const ROOM: usize = 60 << 10;

fn rack(nodes: usize, faulty: bool, copies: usize) -> Processes {
    let config = Config { nodes, copies, memory: 8 << 20, cache: 1 << 20, ..Config::default() };
    Processes::start_mapped(faulty, config, false)
}

fn memory(here: &mut NodeHandle, home: u16, pages: usize) -> GlobalAddr {
    here.alloc((pages * PAGE) as u64, NodeId(home), Discipline::Locked).unwrap()
}

/// The lock at this address, and its regions behind pointers.
fn both(here: &NodeHandle, addr: GlobalAddr) -> (LockedRegions, MappedRegions) {
    let lock = LockedRegions::at(here, addr, ROOM).unwrap();
    let mapped = lock.map().unwrap();
    (lock, mapped)
}

/// A lock over so many pages that it has taken in.
fn lock_over(here: &mut NodeHandle, home: u16, pages: usize) -> (LockedRegions, GlobalAddr) {
    let (lock, memory) = (LockedRegions::new(here, NodeId(home), ROOM).unwrap(), memory(here, home, pages));
    lock.write(here).unwrap().take_in(here, memory, pages * PAGE).unwrap();
    (lock, memory)
}

/// Words of a region that a guard shows.
fn words<'a>(first: *const u8, bytes: usize) -> &'a [u64] {
    // SAFETY: the caller holds the lock while it uses them, and nobody writes then.
    unsafe { std::slice::from_raw_parts(first.cast(), bytes / 8) }
}

#[test]
fn what_a_holder_stores_through_a_pointer_the_next_one_finds_at_the_address_of_the_memory() {
    for copies in [1, 2] {
        let rack = rack(3, false, copies);
        let mut all: Vec<NodeHandle> = rack.nodes.iter().map(Rack::here).collect();
        all[0].keep_copies(copies > 1).unwrap();
        let (lock, memory) = lock_over(&mut all[0], 1, 3);
        for turn in 0..12_u64 {
            let at = turn as usize % 3;
            let (plain, mapped) = both(&all[at], lock.addr());
            let pointer = rack.nodes[at].pointer_to(memory).unwrap();
            assert_eq!(rack.nodes[at].addr_of(pointer), Some(memory), "before anybody is inside");
            let here = &mut all[at];
            // By turns through pointers and by the guards that others know, on the same nodes.
            if turn % 4 < 2 {
                let mut guard = mapped.write(here).unwrap();
                assert_eq!(guard.as_mut_ptr(0), Some(pointer));
                assert!(words(pointer, 3 * PAGE).iter().all(|word| *word == turn), "turn {turn}");
                // SAFETY: the guard shows so many words there to this thread alone.
                unsafe { std::slice::from_raw_parts_mut(pointer.cast::<u64>(), 3 * PAGE / 8) }.fill(turn + 1);
            } else {
                plain.write(here).unwrap().values_mut::<u64>(0).unwrap().fill(turn + 1);
            }
            let guard = mapped.read(here).unwrap();
            assert_eq!(guard.as_ptr(0), Some(pointer.cast_const()));
            assert_eq!(words(pointer, 3 * PAGE), guard.regions().values::<u64>(0).unwrap());
            assert!(words(pointer, 3 * PAGE).iter().all(|word| *word == turn + 1));
        }
    }
}

#[test]
fn a_list_changes_while_it_is_mapped_and_pointers_stay_what_they_were() {
    let rack = rack(2, false, 1);
    let (mut here, mut there) = (rack.nodes[0].here(), rack.nodes[1].here());
    let (lock, first) = lock_over(&mut here, 1, 1);
    let second = memory(&mut there, 0, 2);
    let (_, mapped) = both(&here, lock.addr());
    let [at_first, at_second] = [first, second].map(|addr| rack.nodes[0].pointer_to(addr).unwrap());
    let mut guard = mapped.write(&mut here).unwrap();
    guard.get_mut(0).unwrap().fill(1);
    assert_eq!(guard.as_mut_ptr(1), None);
    // One that has no address, and one that has: behind the first, and then before it.
    let own = guard.change(|regions| regions.push(100)).unwrap().unwrap();
    let taken = guard.change(|regions| regions.take_in(&mut here, second, 2 * PAGE)).unwrap().unwrap();
    assert_eq!((own, guard.as_mut_ptr(own)), (1, None));
    assert_eq!((taken, guard.as_mut_ptr(taken)), (2, Some(at_second)));
    guard.get_mut(own).unwrap().fill(7);
    guard.get_mut(taken).unwrap().fill(2);
    guard.change(|regions| regions.give_back(&mut here, 0)).unwrap().unwrap();
    assert_eq!(
        [guard.as_mut_ptr(0), guard.as_mut_ptr(1), guard.as_mut_ptr(2)],
        [None, Some(at_second), None]
    );
    assert!(guard.get_mut(0).unwrap().iter().all(|byte| *byte == 7));
    guard.change(|regions| regions.take_in(&mut here, first, PAGE)).unwrap().unwrap();
    assert_eq!(guard.as_mut_ptr(2), Some(at_first));
    assert!(guard.get_mut(2).unwrap().iter().all(|byte| *byte == 1), "it was given back as it was");
    drop(guard);
    // What has no room leaves all as it is.
    let mut guard = mapped.write(&mut here).unwrap();
    assert!(guard.change(|regions| regions.push(ROOM)).unwrap().is_err());
    assert!(guard.get_mut(1).unwrap().iter().all(|byte| *byte == 2));
    drop(guard);
    let regions = LockedRegions::at(&there, lock.addr(), ROOM).unwrap();
    let guard = regions.read(&mut there).unwrap();
    let found: Vec<_> = guard.iter().map(|region| (region[0], region.len())).collect();
    assert_eq!(found, [(7, 100), (2, 2 * PAGE), (1, PAGE)]);
}

#[test]
fn another_lock_at_the_same_address_shows_what_is_its_own() {
    let rack = rack(1, false, 1);
    let mut here = rack.nodes[0].here();
    let memory = memory(&mut here, 0, 1);
    let mut places = std::collections::BTreeMap::new();
    let again = (1..=200).any(|value| {
        let lock = LockedRegions::new(&mut here, NodeId(0), ROOM).unwrap();
        // As many grants each time, so that fencing numbers tell nothing.
        lock.write(&mut here).unwrap().take_in(&mut here, memory, PAGE).unwrap();
        lock.write(&mut here).unwrap().get_mut(0).unwrap().fill(value);
        // Whoever has seen a former one at this address sees this one by the same handle.
        let before: Option<MappedRegions> = places.remove(&lock.addr());
        let is_again = before.is_some();
        let mapped = before.unwrap_or_else(|| lock.map().unwrap());
        let guard = mapped.read(&mut here).unwrap();
        assert!(
            words(guard.as_ptr(0).unwrap(), PAGE).iter().all(|word| *word == u64::from_ne_bytes([value; 8]))
        );
        drop(guard);
        lock.write(&mut here).unwrap().give_back(&mut here, 0).unwrap();
        places.insert(lock.addr(), mapped);
        lock.free(&mut here).unwrap();
        is_again
    });
    assert!(again, "addresses are used again");
}

#[test]
fn what_a_node_that_dies_had_stored_is_gone_and_the_last_release_is_there() {
    let mut rack = rack(3, false, 2);
    let mut here = rack.nodes[0].here();
    let memory = memory(&mut here, 0, 2);
    here.keep_copies(true).unwrap();
    let addr = LockedRegions::new(&mut here, NodeId(1), ROOM).unwrap().addr();
    let mut there = rack.nodes[2].here();
    let (_, theirs) = both(&there, addr);
    let mut guard = theirs.write(&mut there).unwrap();
    guard.change(|regions| regions.take_in(&mut there, memory, 2 * PAGE)).unwrap().unwrap();
    guard.get_mut(0).unwrap().fill(1);
    drop(guard);
    // It has stored the half of something, and never leaves.
    let mut guard = theirs.write(&mut there).unwrap();
    guard.get_mut(0).unwrap()[..PAGE].fill(2);
    rack.nodes[2].here().sync().unwrap();
    rack.cut_off(2);
    let (_, mine) = both(&here, addr);
    let seen = mine.read(&mut here).unwrap();
    assert_eq!(seen.regions().writer_that_died(), Some(NodeId(2)));
    assert!(words(seen.as_ptr(0).unwrap(), 2 * PAGE).iter().all(|word| *word == u64::from_ne_bytes([1; 8])));
    // It still has its pages, which do not count.
    assert_eq!(guard.get_mut(0).unwrap()[0], 2);
    rack.reconnect(2);
    drop((seen, guard));
    until(|| theirs.read(&mut there).err());
    assert!(mine.write(&mut here).unwrap().get_mut(0).unwrap().iter().all(|byte| *byte == 1));
}

/// Every word of every region is the version.
fn version<'a>(regions: impl Iterator<Item = &'a [u64]>) -> u64 {
    let mut version = None;
    for word in regions.flatten() {
        assert_eq!(*version.get_or_insert(*word), *word, "two versions");
    }
    version.expect("the first region is always there")
}

/// The regions as pointers see them.
fn seen<'a>(mapped: &MappedRegions, regions: &'a RegionsReadGuard<'_>) -> Vec<&'a [u64]> {
    let region = |number: usize| match mapped.pointer(regions, number) {
        Some(first) => words(first, regions.get(number).unwrap().len()),
        None => regions.values::<u64>(number).unwrap(),
    };
    (0..regions.len()).map(region).collect()
}

/// `RACKMEM_SEED=N` draws the same steps again (threads run as they run).
#[test]
fn nobody_sees_regions_of_two_versions_through_pointers_while_they_come_and_go() {
    const TIMES: u64 = 60;
    let drawn = || RandomState::new().hash_one(0) >> 32;
    let seed = std::env::var("RACKMEM_SEED").map_or_else(|_| drawn(), |seed| seed.parse().unwrap());
    println!("RACKMEM_SEED={seed} cargo test -p rackmem networked::mapped::guarded");
    for (faulty, copies) in [(false, 1), (true, 1), (true, 2)] {
        let rack = rack(3, faulty, copies);
        let mut here = rack.nodes[0].here();
        let memories: Vec<_> = (0..4)
            .map(|nth| (memory(&mut here, nth % 3, 1 + nth as usize % 2), 1 + nth as usize % 2))
            .collect();
        here.keep_copies(copies > 1).unwrap();
        let lock = LockedRegions::new(&mut here, NodeId(2), ROOM).unwrap();
        lock.write(&mut here).unwrap().push(8).unwrap();
        let changes = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..6_u64 {
                let (rack, lock, memories, changes) = (&rack, &lock, &memories, &changes);
                scope.spawn(move || {
                    let mut dice = Random::new(random::mix(seed ^ random::mix(thread)));
                    let mut here = rack.nodes[thread as usize % 3].here();
                    let (plain, mapped) = both(&here, lock.addr());
                    for _ in 0..TIMES {
                        match dice.below(4) {
                            0 => {
                                let guard = mapped.read(&mut here).unwrap();
                                version(seen(&mapped, guard.regions()).into_iter());
                            }
                            1 => {
                                let guard = plain.read(&mut here).unwrap();
                                version((0..guard.len()).map(|number| guard.values::<u64>(number).unwrap()));
                            }
                            2 => {
                                let mut guard = plain.write(&mut here).unwrap();
                                let next = 1 + version(
                                    (0..guard.len()).map(|number| guard.values::<u64>(number).unwrap()),
                                );
                                (0..guard.len())
                                    .for_each(|number| guard.values_mut::<u64>(number).unwrap().fill(next));
                                changes.fetch_add(1, SeqCst);
                            }
                            _ => {
                                let mut guard = mapped.write(&mut here).unwrap();
                                let now = guard
                                    .change(|regions| {
                                        version(
                                            (0..regions.len())
                                                .map(|number| regions.values::<u64>(number).unwrap()),
                                        )
                                    })
                                    .unwrap();
                                let (memory, pages) = memories[dice.below(4) as usize];
                                // What comes in may be of any version, and is overwritten with the rest.
                                guard
                                    .change(|regions| {
                                        let number = (0..regions.len())
                                            .find(|number| regions.taken_from(*number) == Some(memory));
                                        match number {
                                            Some(number) => regions.give_back(&mut here, number),
                                            None => {
                                                regions.take_in(&mut here, memory, pages * PAGE).map(drop)
                                            }
                                        }
                                    })
                                    .unwrap()
                                    .unwrap();
                                let mut number = 0;
                                while let Some(bytes) = guard.get_mut(number) {
                                    bytes
                                        .chunks_exact_mut(8)
                                        .for_each(|word| word.copy_from_slice(&(now + 1).to_ne_bytes()));
                                    number += 1;
                                }
                                changes.fetch_add(1, SeqCst);
                            }
                        }
                    }
                });
            }
        });
        let guard = lock.read(&mut here).unwrap();
        let last = version((0..guard.len()).map(|number| guard.values::<u64>(number).unwrap()));
        assert_eq!(last, changes.load(SeqCst), "no change is lost");
    }
}

#[test]
fn what_cannot_be_mapped_is_refused_and_the_lock_is_free() {
    let rack = rack(2, false, 1);
    let mut here = rack.nodes[0].here();
    let (lock, mem) = lock_over(&mut here, 1, 2);
    let (_, mapped) = both(&here, lock.addr());
    // Somebody has mapped its place, though there is no coherent memory: that is refused, and so is the other way round.
    let read = mapped.read(&mut here).unwrap();
    if rackmem::can_map().is_ok() {
        let refused = rack.nodes[0].map(mem, PAGE).unwrap_err();
        assert!(matches!(refused, MapError::NotMapped(_)), "{refused}");
    }
    // Others read beside it.
    assert!(mapped.read_timeout(&mut rack.nodes[0].here(), Duration::ZERO).unwrap().is_some());
    assert!(mapped.write_timeout(&mut rack.nodes[0].here(), Duration::ZERO).unwrap().is_none());
    drop(read);
    // A part of a page.
    let odd = here.alloc(100, NodeId(0), Discipline::Locked).unwrap();
    let mut guard = mapped.write(&mut here).unwrap();
    let refused = guard.change(|regions| regions.take_in(&mut here, odd, 100).unwrap()).unwrap_err();
    assert!(matches!(refused, MapError::NoPages { addr, len: 100 } if addr == odd), "{refused}");
    assert_eq!((guard.as_mut_ptr(0), guard.get_mut(0).map(|bytes| bytes.len())), (None, Some(2 * PAGE)));
    drop(guard);
    assert!(matches!(mapped.write(&mut here), Err(MapError::NoPages { .. })));
    assert!(matches!(mapped.read(&mut here), Err(MapError::NoPages { .. })));
    lock.try_write(&mut here).unwrap().expect("nobody holds it").give_back(&mut here, 1).unwrap();
    drop(mapped.write(&mut here).unwrap());
    // Who panics inside poisons it.
    let inside = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = mapped.write(&mut here).unwrap();
        panic!("on purpose");
    }));
    assert!(inside.is_err());
    assert!(matches!(mapped.read(&mut here), Err(MapError::Lock(LockError::Poisoned { .. }))));
    drop(lock.write_poisoned(&mut here).unwrap());
    drop(mapped.read(&mut here).unwrap());
    lock.free(&mut here).unwrap();
    let freed = mapped.read(&mut here).map(drop);
    assert!(matches!(freed, Err(MapError::Lock(LockError::Failed(Error::Unallocated { .. })))), "{freed:?}");
    // In one process there is no address for each node.
    let embedded =
        Rack::embedded(Config { nodes: 1, memory: 1 << 20, cache: 1 << 20, ..Config::default() }).unwrap();
    let lock = LockedRegions::new(&mut embedded.node(NodeId(0)), NodeId(0), 64).unwrap();
    assert!(matches!(lock.map(), Err(MapError::Embedded)));
}

/// The test starts itself again, for each way to end.
#[test]
fn an_access_without_the_lock_ends_the_process_with_a_line_that_names_it() {
    const HOW: &str = "RACKMEM_GUARDED";
    if let Ok(how) = std::env::var(HOW) {
        let rack = rack(1, false, 1);
        let mut here = rack.nodes[0].here();
        let (lock, memory) = lock_over(&mut here, 0, 1);
        let (_, mapped) = both(&here, lock.addr());
        println!("lock {}", lock.addr());
        let pointer = rack.nodes[0].pointer_to(memory).unwrap();
        mapped.write(&mut here).unwrap().get_mut(0).unwrap().fill(1);
        // SAFETY: none: the process ends here.
        unsafe {
            match how.as_str() {
                "load" => _ = std::hint::black_box(pointer.read_volatile()),
                "store" => {
                    let _reading = mapped.read(&mut here).unwrap();
                    assert_eq!(pointer.read_volatile(), 1, "it may be read");
                    pointer.write_volatile(2);
                }
                _ => {
                    drop(mapped);
                    std::hint::black_box(pointer.read_volatile());
                }
            }
        }
        unreachable!("the access was made");
    }
    let test =
        "networked::mapped::guarded::an_access_without_the_lock_ends_the_process_with_a_line_that_names_it";
    for (how, names) in [("load", true), ("store", true), ("unmapped", false)] {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(HOW, how)
            .output()
            .unwrap();
        let [out, said] = [&child.stdout, &child.stderr].map(|text| String::from_utf8_lossy(text));
        let lock = out.lines().find_map(|line| line.split_once("lock ")).expect("it says which").1;
        assert_eq!(child.status.signal(), Some(11), "{how}: {said}");
        let line = said.lines().find(|line| line.starts_with("rackmem: ")).expect("it says why");
        let named = line.contains(&format!("it is guarded by the lock at {lock}, which is not held here"));
        assert_eq!(named, names, "{how}: {line}");
    }
}
