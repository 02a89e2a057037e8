//! Locks with copies: they outlive the nodes that had them, with the data of every whole release that anybody has seen.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use check::AtEnd;
use rackmem::{Config, Discipline, Error, Locked, LockedRegions, Nanos, NodeHandle, NodeId};

use super::rig::{Processes, until};
use crate::locks_everywhere::{Nodes, everywhere};
use crate::names_everywhere::names_at;

fn shape(nodes: usize, peek: bool) -> Config {
    Config { nodes, copies: 2, memory: 8 << 20, cache: 1 << 20, peek, ..Config::default() }
}

fn mortal(nodes: usize, faulty: bool) -> Processes {
    Processes::start_with(faulty, shape(nodes, faulty))
}

/// What this handle makes has copies.
fn keeping(rack: &Processes, node: usize) -> NodeHandle {
    let mut here = rack.nodes[node].here();
    here.keep_copies(true).unwrap();
    here
}

fn same<T>(handle: &NodeHandle, lock: &Locked<T>) -> Locked<T>
where
    T: rackmem::FromBytes + rackmem::IntoBytes + rackmem::KnownLayout + rackmem::Immutable,
{
    Locked::at(handle, lock.addr()).unwrap()
}

fn quiet(body: fn(Nodes<'_>)) {
    let rack = Processes::start_patient(false, shape(3, false), Nanos::from_millis(10_000));
    body(&|node| keeping(&rack, usize::from(node)));
}

everywhere!(quiet, with copies, too);

mod faulty {
    use super::*;

    fn lossy(body: fn(Nodes<'_>)) {
        let rack = Processes::start_patient(true, shape(3, true), Nanos::from_millis(10_000));
        body(&|node| keeping(&rack, usize::from(node)));
    }

    everywhere!(lossy, with copies, too);
}

#[test]
fn a_lock_outlives_its_home_and_its_last_holder() {
    for dies in [0, 1] {
        let mut rack = mortal(3, false);
        // Node 0 serves the lock, and node 1 has written last.
        let lock = Locked::new(&mut keeping(&rack, 2), NodeId(0), [1_u64; 700]).unwrap();
        assert_eq!(lock.addr().home(), NodeId(3));
        let mut second = rack.nodes[1].here();
        *same(&second, &lock).write(&mut second).unwrap() = [2; 700];
        // Whoever has seen it can rely on it.
        let mut third = rack.nodes[2].here();
        assert_eq!(*same(&third, &lock).read(&mut third).unwrap(), [2; 700]);
        rack.cut_off(dies);
        let mut guard = lock.write(&mut third).unwrap();
        assert_eq!((*guard, guard.writer_that_died()), ([2; 700], None), "nobody was inside");
        *guard = [3; 700];
        drop(guard);
        let mut other = rack.nodes[1 - dies].here();
        assert_eq!(*same(&other, &lock).read(&mut other).unwrap(), [3; 700]);
        drop((second, other));
    }
}

#[test]
fn whoever_comes_next_is_told_that_a_writer_has_died_and_finds_the_last_release() {
    let mut rack = mortal(3, false);
    let mut here = keeping(&rack, 0);
    let lock = Locked::new(&mut here, NodeId(0), [1_u64; 600]).unwrap();
    let mut there = rack.nodes[2].here();
    let theirs = same(&there, &lock);
    let mut guard = theirs.write(&mut there).unwrap();
    let fence = guard.fence();
    *guard = [9; 600];
    // That others find out how it ended needs something of it to be there.
    rack.nodes[2].here().sync().unwrap();
    rack.cut_off(2);
    for _ in 0..2 {
        let seen = lock.read(&mut here).unwrap();
        assert_eq!((*seen, seen.writer_that_died()), ([1; 600], Some(NodeId(2))), "readers, too");
    }
    let mut next = lock.write(&mut here).unwrap();
    assert_eq!((*next, next.writer_that_died()), ([1; 600], Some(NodeId(2))));
    assert!(next.fence() > fence, "{} after {fence}", next.fence());
    next[0] = 2;
    drop(next);
    assert_eq!(lock.read(&mut here).unwrap().writer_that_died(), None, "somebody has written since");
    // Whoever was taken for dead changes nothing any more.
    rack.reconnect(2);
    drop(guard);
    until(|| theirs.read(&mut there).err());
    assert_eq!((lock.read(&mut here).unwrap()[0], lock.read(&mut here).unwrap()[1]), (2, 1));
}

/// Nothing that the writer did is left, not even that it was inside: its fencing number was shown to somebody all the same.
#[test]
fn no_fencing_number_is_given_twice_when_nothing_of_a_grant_is_left() {
    let mut rack = mortal(3, false);
    let mut here = keeping(&rack, 0);
    let lock = Locked::new(&mut here, NodeId(0), 1_u64).unwrap();
    let mut there = rack.nodes[2].here();
    let theirs = same(&there, &lock);
    drop(theirs.write(&mut there).unwrap());
    there.sync().unwrap();
    let guard = theirs.write(&mut there).unwrap();
    let fence = guard.fence();
    rack.cut_off(2);
    let next = lock.write(&mut here).unwrap();
    assert_eq!(next.writer_that_died(), None);
    assert!(next.fence() > fence, "{} after {fence}", next.fence());
    rack.reconnect(2);
    drop((next, guard));
}

/// The home of a lock dies while threads are inside, on other nodes: they stay alone.
#[test]
fn whoever_is_inside_when_the_home_dies_stays_alone_until_he_leaves() {
    for writes in [true, false] {
        let mut rack = mortal(4, false);
        let (mut here, mut there) = (keeping(&rack, 2), rack.nodes[3].here());
        let lock = Locked::new(&mut here, NodeId(0), [0_u64; 2]).unwrap();
        let (theirs, left) = (same(&there, &lock), AtomicBool::new(false));
        let mut guards = (None, None);
        if writes {
            guards.0 = Some(lock.write(&mut here).unwrap());
        } else {
            guards.1 = Some(lock.read(&mut here).unwrap());
        }
        rack.cut_off(0);
        std::thread::scope(|scope| {
            // They go if this panics, too: somebody waits for the lock.
            let mut guards = guards;
            let waiting = scope.spawn(|| {
                let mut guard = theirs.write(&mut there).unwrap();
                assert!(left.load(Ordering::SeqCst), "somebody else is inside");
                guard[1] += 1;
                guard[0]
            });
            until(|| (!rack.nodes[2].is_up(NodeId(0))).then_some(()));
            std::thread::sleep(Duration::from_millis(100));
            if let (Some(guard), _) = &mut guards {
                guard[0] = 7;
            }
            left.store(true, Ordering::SeqCst);
            drop(guards);
            assert_eq!(waiting.join().unwrap(), if writes { 7 } else { 0 });
        });
    }
}

#[test]
fn a_release_is_whole_or_not_there_whenever_its_writer_dies() {
    let every = std::env::var("RACKMEM_EVERY").map_or(13, |every| every.parse().expect("a number of steps"));
    let mut rack = mortal(3, false);
    // Three blocks and more: each release is in several pieces.
    type Data = [u64; 1700];
    let lock = Locked::<Data>::new(&mut keeping(&rack, 1), NodeId(0), [0; 1700]).unwrap();
    let (mut deaths, mut value, mut told) = (0, 0, 0);
    for steps in (1..).step_by(every) {
        let (mut writer, theirs) =
            (rack.nodes[2].here(), Locked::<Data>::at(&rack.nodes[2].here(), lock.addr()));
        let theirs = theirs.unwrap();
        let (before, synced) = (value, AtomicU64::new(value));
        rack.cut_off_after(2, steps);
        let is_over = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                for next in before + 1..=before + 2 {
                    let mut guard = theirs.write(&mut writer).map_err(drop)?;
                    *guard = [next; 1700];
                    // Nothing of that yet, but that somebody is inside.
                    writer.sync().map_err(drop)?;
                    drop(guard);
                    writer.sync().map_err(drop)?;
                    synced.store(next, Ordering::SeqCst);
                }
                Ok::<(), ()>(())
            });
            until(|| (writing.is_finished() || rack.is_cut_off(2)).then_some(()));
            rack.cut_off(2);
            let mut reader = rack.nodes[1].here();
            let seen = same(&reader, &lock);
            let mut guard = seen.write(&mut reader).unwrap();
            let (first, synced) = (guard[0], synced.load(Ordering::SeqCst));
            assert!(guard.iter().all(|word| *word == first), "{steps}: a part of a release");
            assert!(
                (synced..=value + 2).contains(&first),
                "{steps}: {first} of {value}, {synced} was synced"
            );
            told += u64::from(guard.writer_that_died().is_some());
            value += 10;
            *guard = [value; 1700];
            drop(guard);
            until(|| (!rack.nodes[1].is_up(NodeId(2))).then_some(()));
            rack.reconnect(2);
            writing.join().unwrap().is_ok()
        });
        deaths += 1;
        if is_over {
            break;
        }
        until(|| rack.nodes[2].is_fenced().then_some(()));
        rack.rejoin(2);
        until(|| rack.has_all_copies().then_some(()));
    }
    println!("{deaths} deaths, {every} steps apart, of which {told} left a mark");
    assert!(deaths > 3 && told > 0, "{deaths} deaths, {told} told of");
}

/// A bank: whatever dies, no money comes or goes, and what was paid in and synced is there.
fn a_bank(faulty: bool) {
    const NODES: usize = 4;
    const EACH: u64 = 1000;
    let mut rack = mortal(NODES, faulty);
    // An account for each node that dies, whose teller pays in there, and one of the house.
    let bank =
        keeping(&rack, 3).named::<Locked<[u64; NODES + 1]>>("bank").open_or(|| [EACH; NODES + 1]).unwrap();
    let paid = [const { AtomicU64::new(0) }; NODES];
    let done = AtomicBool::new(false);
    let survivor = rack.nodes[3].clone();
    let teller = &|mut here: NodeHandle, node: usize| {
        let bank = Locked::<[u64; NODES + 1]>::at(&here, bank.addr()).unwrap();
        while !done.load(Ordering::Relaxed) {
            let Ok(mut guard) = bank.write(&mut here) else { break };
            let accounts = &mut *guard;
            assert_eq!(accounts.iter().sum::<u64>(), EACH * (NODES as u64 + 1), "{accounts:?}");
            let from = (0..=NODES).max_by_key(|at| accounts[*at]).unwrap();
            accounts[from] -= 1;
            accounts[node] += 1;
            drop(guard);
            if here.sync().is_err() {
                break;
            }
            paid[node].fetch_add(1, Ordering::SeqCst);
        }
    };
    std::thread::scope(|scope| {
        let _done = AtEnd(&done);
        let here = survivor.here();
        scope.spawn(move || teller(here, 3));
        for round in 0..3 {
            for node in 0..3 {
                let here = rack.nodes[node].here();
                scope.spawn(move || teller(here, node));
            }
            std::thread::sleep(Duration::from_millis(50));
            rack.cut_off(round);
            until(|| (!survivor.is_up(NodeId(round as u16))).then_some(()));
            // Its threads find out.
            rack.reconnect(round);
            until(|| rack.nodes[round].is_fenced().then_some(()));
            rack.rejoin(round);
            until(|| rack.has_all_copies().then_some(()));
            let total: u64 = paid.iter().map(|paid| paid.load(Ordering::SeqCst)).sum();
            until(|| {
                (paid.iter().map(|paid| paid.load(Ordering::SeqCst)).sum::<u64>() > total).then_some(())
            });
        }
    });
    let mut here = rack.nodes[0].here();
    let accounts = *same(&here, &bank).read(&mut here).unwrap();
    assert_eq!(accounts.iter().sum::<u64>(), EACH * (NODES as u64 + 1), "{accounts:?}");
    println!("{paid:?} transfers");
}

#[test]
fn no_money_comes_or_goes_while_one_node_after_the_other_dies() {
    a_bank(false);
}

#[test]
fn no_money_comes_or_goes_on_a_bad_network() {
    a_bank(true);
}

#[test]
fn locks_with_names_and_regions_outlive_their_node() {
    let mut rack = mortal(3, false);
    let mut here = rack.nodes[0].here();
    let [name, regions] = ["lock", "regions"].map(|stem| names_at(&here, 2, stem));
    let lock = here.named::<Locked<u64>>(&name).with_copies().create(7).unwrap();
    let jobs = here.named::<LockedRegions>(&regions).with_copies().create(40_000).unwrap();
    let mut list = jobs.write(&mut here).unwrap();
    list.push_values(&[1_u64, 2, 3]).unwrap();
    list.push(20_000).unwrap();
    drop(list);
    let fence = lock.write(&mut here).unwrap().fence();
    here.sync().unwrap();
    rack.cut_off(2);
    let mut there = rack.nodes[1].here();
    let found = there.named::<Locked<u64>>(&name).open().unwrap();
    assert_eq!(*found.read(&mut there).unwrap(), 7);
    let found = there.named::<LockedRegions>(&regions).open().unwrap();
    let list = found.read(&mut there).unwrap();
    assert_eq!(list.values::<u64>(0), Some(&[1, 2, 3][..]));
    assert_eq!(list.get(1).map(<[u8]>::len), Some(20_000));
    drop(list);
    // Made anew under the same name, it is another lock, and says so to who has opened the first one.
    there.remove_name(&name).unwrap();
    assert_eq!(lock.read(&mut here).unwrap_err().failure(), Some(Error::Unallocated { addr: lock.addr() }));
    let new = there.named::<Locked<u64>>(&name).with_copies().create(8).unwrap();
    assert!(new.write(&mut there).unwrap().fence() > fence);
    assert!(lock.read(&mut here).is_err());
}

#[test]
fn a_lock_with_a_name_is_watched_where_it_is_used() {
    let rack = Processes::start_patient(false, shape(3, false), Nanos::from_millis(10_000));
    let mut here = keeping(&rack, 1);
    let lock = here.named::<Locked<u64>>("watched").create(0).unwrap();
    for _ in 0..3 {
        *lock.write(&mut here).unwrap() += 1;
    }
    let watched = || rack.nodes[1].watched_locks().pop().unwrap().1;
    assert_eq!((watched().writer, watched().readers, watched().fence & 0xff), (false, 0, 3));
    assert!(watched().waits.count() >= 3, "each thread has asked: {:?}", watched());
    let writing = lock.write(&mut here).unwrap();
    assert!(watched().writer);
    drop(writing);
    let mut second = rack.nodes[1].here();
    let reading = (lock.read(&mut here).unwrap(), lock.read(&mut second).unwrap());
    assert_eq!((watched().writer, watched().readers), (false, 2));
    drop(reading);
    assert_eq!((watched().writer, watched().readers, watched().fence & 0xff), (false, 0, 4));
}

/// Readers that come again and again leave the lock now and then, but never all at once.
#[test]
fn a_writer_gets_in_however_readers_come_and_go() {
    let rack = Processes::start_patient(false, shape(3, false), Nanos::from_millis(10_000));
    let mut here = keeping(&rack, 0);
    let lock = Locked::new(&mut here, NodeId(1), 0_u64).unwrap();
    let (reads, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut waited_for = Vec::new();
    std::thread::scope(|scope| {
        let _done = AtEnd(&done);
        for thread in 0..6 {
            let mut there = rack.nodes[thread % 3].here();
            let (theirs, reads, done) = (same(&there, &lock), &reads, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let guard = theirs.read(&mut there).unwrap();
                    std::thread::sleep(Duration::from_micros(500));
                    drop(guard);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        until(|| (reads.load(Ordering::Relaxed) > 20).then_some(()));
        for _ in 0..5 {
            let before = reads.load(Ordering::Relaxed);
            let Some(mut guard) = lock.write_timeout(&mut here, Duration::from_secs(10)).unwrap() else {
                break;
            };
            *guard += 1;
            drop(guard);
            waited_for.push(reads.load(Ordering::Relaxed) - before);
        }
    });
    assert_eq!(waited_for.len(), 5, "it did not: {waited_for:?} reads went first before");
}

#[test]
fn what_is_no_such_lock_is_refused() {
    let rack = Processes::start_patient(false, shape(3, false), Nanos::from_millis(10_000));
    let mut here = keeping(&rack, 0);
    let plain = here.alloc(4096, NodeId(1), Discipline::Coherent).unwrap();
    here.write_word(plain, 77).unwrap();
    let lock = here.rwlock(plain, 64).unwrap();
    let wrong = Error::WrongDiscipline { addr: plain, needs: Discipline::Locked };
    assert_eq!(lock.read(&mut here).map(drop), Err(wrong));
    let addr = here.alloc(64, NodeId(1), Discipline::Locked).unwrap();
    drop(here.rwlock(addr, 64).unwrap().write(&mut here).unwrap());
    for len in [63, 56, 72, 128] {
        let said = if len == 63 { 64 } else { len };
        let found = here.rwlock(addr, len).unwrap().write(&mut here).map(drop);
        let expected = if len == 63 { Ok(()) } else { Err(Error::WrongLength { addr, len: said as u64 }) };
        assert_eq!(found, expected, "{len} bytes");
    }
    here.free(addr).unwrap();
    assert_eq!(here.rwlock(addr, 64).unwrap().write(&mut here).map(drop), Err(Error::Unallocated { addr }));
    let most = here.alloc(65 << 10, NodeId(1), Discipline::Locked);
    assert_eq!(most, Err(Error::RegionTooLong { len: 65 << 10, most: 64 << 10 }));
    // More than a node can hold of them at once.
    let many: Vec<_> = (0..31).map(|at| Locked::new(&mut here, NodeId(at % 3), at).unwrap()).collect();
    let mut handles: Vec<_> = many.iter().map(|_| rack.nodes[0].here()).collect();
    let held: Vec<_> = many.iter().zip(&mut handles).map(|(lock, here)| lock.write(here).unwrap()).collect();
    let one_more = Locked::new(&mut rack.nodes[0].here(), NodeId(1), 1_u64).unwrap();
    assert!(
        one_more.try_write(&mut here).unwrap().is_some(),
        "locks without copies are as many as one likes"
    );
    let kept = Locked::<u16>::at(&here, many[0].addr()).unwrap();
    assert!(kept.try_write(&mut here).is_err());
    drop(held);
    assert_eq!(*many[30].read(&mut here).unwrap(), 30);
}
