//! What must hold of locks, on whatever rack of three nodes, by whatever handles: tests of several kinds of racks call these.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use check::AtEnd;
use rackmem::attach::Batch;
use rackmem::{
    Discipline, Error, GlobalAddr, LockError, LockMemory, LockMode, Locked, NodeHandle, NodeId, block_on,
};

mod regions;

pub(crate) use regions::{
    a_list_that_cannot_be_changed_so_stays_as_it_was, a_panic_while_regions_change_poisons_them,
    memory_of_other_locks_is_taken_in_and_given_back, nobody_sees_regions_of_two_versions,
    parts_are_of_one_version_and_what_their_types_say_on_every_node,
    regions_come_and_go_and_grow_and_are_what_they_were_on_every_node,
    regions_with_a_name_are_found_with_their_room_and_go_with_it,
};

/// A handle of each node, for any number of threads.
pub(crate) type Nodes<'a> = &'a (dyn Fn(u16) -> NodeHandle + Sync);

const SHORT: Duration = Duration::from_millis(30);

/// Threads of all nodes do this.
fn on_all(nodes: Nodes<'_>, threads: u64, work: impl Fn(&mut NodeHandle) + Sync) {
    std::thread::scope(|scope| {
        for node in 0..3 {
            for _ in 0..threads {
                let work = &work;
                scope.spawn(move || work(&mut nodes(node)));
            }
        }
    });
}

/// Between processes whoever tried in vain is still in the way for a moment: messages travel.
fn soon(mut has_it: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !has_it() {
        if began.elapsed() > Duration::from_secs(30) {
            return false;
        }
    }
    true
}

/// The same lock, for a handle of another process.
fn same<T>(handle: &NodeHandle, addr: GlobalAddr) -> Locked<T>
where
    T: rackmem::FromBytes + rackmem::IntoBytes + rackmem::KnownLayout + rackmem::Immutable,
{
    Locked::at(handle, addr).unwrap()
}

pub(crate) fn a_counter_misses_no_increment_and_nobody_sees_half_of_one(nodes: Nodes<'_>) {
    const TIMES: u64 = 100;
    for home in [0, 2] {
        let addr = Locked::new(&mut nodes(0), NodeId(home), [0_u64; 100]).unwrap().addr();
        on_all(nodes, 2, |here| {
            let counter = same::<[u64; 100]>(here, addr);
            for _ in 0..TIMES {
                counter.write(here).unwrap().iter_mut().for_each(|word| *word += 1);
                let seen = *counter.read(here).unwrap();
                assert!(seen.iter().all(|word| *word == seen[0]), "{seen:?}");
            }
        });
        let mut here = nodes(1);
        assert_eq!(*same::<[u64; 100]>(&here, addr).read(&mut here).unwrap(), [6 * TIMES; 100]);
    }
}

pub(crate) fn readers_go_on_beside_each_other_and_what_they_read_is_not_undone(nodes: Nodes<'_>) {
    let addr = Locked::new(&mut nodes(0), NodeId(1), [0_u64; 33]).unwrap().addr();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _done = AtEnd(&done);
        for node in 0..3 {
            let done = &done;
            scope.spawn(move || {
                let mut here = nodes(node);
                let (value, mut last) = (same::<[u64; 33]>(&here, addr), 0);
                while !done.load(Ordering::Relaxed) {
                    let seen = *value.read(&mut here).unwrap();
                    assert!(seen.iter().all(|word| *word == seen[0]), "{seen:?}");
                    assert!(seen[0] >= last, "what was read is not undone");
                    last = seen[0];
                }
            });
        }
        let mut here = nodes(2);
        let value = same::<[u64; 33]>(&here, addr);
        (1..=200).for_each(|round| *value.write(&mut here).unwrap() = [round; 33]);
    });
}

pub(crate) fn regions_of_any_size_travel_whole(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    // Each has the address of the one before, more often than not.
    for len in [0, 1, 7, 8, 100, 5_000, 60_000, 9, 60_000, 8, 1] {
        let addr = here.alloc(len.max(1) as u64, NodeId(1), Discipline::Locked).unwrap();
        let lock = here.rwlock(addr, len).unwrap();
        for (at, byte) in lock.write(&mut here).unwrap().iter_mut().enumerate() {
            *byte = (at * 31) as u8;
        }
        let other = there.rwlock(addr, len).unwrap();
        let mut guard = other.write(&mut there).unwrap();
        assert!(guard.iter().enumerate().all(|(at, byte)| *byte == (at * 31) as u8), "{len} bytes");
        guard.reverse();
        drop(guard);
        let guard = lock.read(&mut here).unwrap();
        assert!(guard.iter().rev().enumerate().all(|(at, byte)| *byte == (at * 31) as u8), "{len} bytes");
        drop(guard);
        lock.end(&mut here).unwrap();
        here.free(addr).unwrap();
    }
}

pub(crate) fn whoever_tries_gets_what_is_free_and_not_what_is_held(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    let value = Locked::new(&mut here, NodeId(0), 1_u64).unwrap();
    for mut other in [nodes(0), nodes(1)] {
        let same = same::<u64>(&other, value.addr());
        let held = value.write(&mut here).unwrap();
        assert!(
            same.try_read(&mut other).unwrap().is_none() && same.try_write(&mut other).unwrap().is_none()
        );
        drop(held);
        assert!(soon(|| same.try_write(&mut other).unwrap().is_some_and(|guard| *guard == 1)));
        let held = value.read(&mut here).unwrap();
        assert!(soon(|| same.try_read(&mut other).unwrap().is_some()), "readers share");
        assert!(same.try_write(&mut other).unwrap().is_none());
        drop(held);
        assert!(soon(|| same.try_write(&mut other).unwrap().is_some()));
    }
}

pub(crate) fn a_wait_ends_in_time_without_the_lock_and_later_waits_get_it(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    let value = Locked::new(&mut here, NodeId(1), 5_u64).unwrap();
    for mut other in [nodes(0), nodes(1)] {
        let same = same::<u64>(&other, value.addr());
        let held = value.write(&mut here).unwrap();
        let began = Instant::now();
        // Longer than a daemon waits without a look at who it waits for.
        assert!(same.read_timeout(&mut other, 10 * SHORT).unwrap().is_none());
        assert!(same.write_timeout(&mut other, SHORT).unwrap().is_none());
        assert!(began.elapsed() >= 11 * SHORT, "it waited as long as it was told to");
        drop(held);
        assert_eq!(*same.read_timeout(&mut other, Duration::from_secs(60)).unwrap().unwrap(), 5);
        assert!(same.write_timeout(&mut other, Duration::from_secs(60)).unwrap().is_some());
    }
}

pub(crate) fn a_lock_that_was_waited_for_in_vain_still_goes_to_whoever_waits_on(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    let value = Locked::new(&mut here, NodeId(0), 0_u64).unwrap();
    let addr = value.addr();
    let held = value.write(&mut here).unwrap();
    let in_vain = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for node in [1, 2, 1, 2] {
            let in_vain = &in_vain;
            scope.spawn(move || {
                let mut other = nodes(node);
                let value = same::<u64>(&other, addr);
                assert!(value.write_timeout(&mut other, SHORT).unwrap().is_none());
                in_vain.fetch_add(1, Ordering::Relaxed);
                assert!(soon(|| in_vain.load(Ordering::Relaxed) == 4), "one of them has failed");
                *value.write(&mut other).unwrap() += 1;
            });
        }
        assert!(soon(|| in_vain.load(Ordering::Relaxed) == 4), "one of them has failed");
        // Most of them are in the queue by then.
        std::thread::sleep(SHORT);
        drop(held);
    });
    assert_eq!(*value.read(&mut here).unwrap(), 4);
}

pub(crate) fn a_panic_while_writing_poisons_the_value_on_every_node_until_that_is_cleared(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let value = Locked::new(&mut here, NodeId(0), 1_u64).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = value.write(&mut here).unwrap();
        *guard = 2;
        panic!("in the middle of it");
    }));
    assert!(panicked.is_err());
    let other = same::<u64>(&there, value.addr());
    assert!(other.is_poisoned(&mut there).unwrap());
    let poisoned = LockError::Poisoned { addr: value.addr() };
    assert_eq!(other.read(&mut there).map(drop), Err(poisoned));
    assert_eq!(*other.read_poisoned(&mut there).unwrap(), 2, "the value is there all the same");
    assert_eq!(other.write(&mut there).map(drop), Err(poisoned));
    *other.write_poisoned(&mut there).unwrap() = 3;
    assert!(value.is_poisoned(&mut here).unwrap(), "nobody has cleared it");
    value.clear_poison(&mut here).unwrap();
    assert_eq!(*other.read(&mut there).unwrap(), 3);
}

pub(crate) fn what_is_no_lock_is_refused_with_what_is_wrong(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let coherent = here.alloc(64, NodeId(1), Discipline::Coherent).unwrap();
    let never = GlobalAddr::new(NodeId(1), 4 << 20);
    let mut refused = |addr| here.rwlock(addr, 8).unwrap().write(&mut here).err();
    assert_eq!(refused(coherent), Some(Error::WrongDiscipline { addr: coherent, needs: Discipline::Locked }));
    assert_eq!(refused(never), Some(Error::Unallocated { addr: never }));
    let nowhere = GlobalAddr::new(NodeId(9), 64);
    // Of an attached application the daemon knows.
    let found = here.rwlock(nowhere, 8).and_then(|lock| lock.write(&mut here).map(drop));
    assert_eq!(found, Err(Error::NoSuchNode { addr: nowhere, nodes: 3 }));
    let odd = GlobalAddr::new(NodeId(1), 4097);
    assert_eq!(here.rwlock(odd, 8).err(), Some(Error::Unaligned { addr: odd }));
    let long = here.rwlock(never, (1 << 20) + 1).err();
    assert!(matches!(long, Some(Error::RegionTooLong { .. })), "{long:?}");
    let value = Locked::new(&mut here, NodeId(0), [1_u64; 4]).unwrap();
    let addr = value.addr();
    for handle in [&mut here, &mut there] {
        let other = same::<[u64; 5]>(handle, addr);
        assert_eq!(other.read(handle).unwrap_err().failure(), Some(Error::WrongLength { addr, len: 56 }));
    }
    assert_eq!(here.read_word(addr), Err(Error::WrongDiscipline { addr, needs: Discipline::Coherent }));
}

pub(crate) fn a_freed_lock_is_gone_for_everybody(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    for round in 0..20_u64 {
        let value = Locked::new(&mut here, NodeId(2), [round; 3]).unwrap();
        let addr = value.addr();
        let other = same::<[u64; 3]>(&there, addr);
        other.write(&mut there).unwrap()[0] += 1;
        assert_eq!(*value.read(&mut here).unwrap(), [round + 1, round, round]);
        value.free(&mut here).unwrap();
        assert_eq!(other.read(&mut there).unwrap_err().failure(), Some(Error::Unallocated { addr }));
    }
}

/// Two that read are two, also by handles of one process and when the first comes out last.
pub(crate) fn locks_are_held_beyond_their_handles_and_apart_from_each_other(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let addr = here.alloc(24, NodeId(2), Discipline::Locked).unwrap();
    block_on(async {
        let mut made = here.lock_anew(addr, 24).await.unwrap();
        here.write_locked(&mut made, 16, b"12345678").await;
        here.unlock(made).await;
        let (mut first, mut second) = (here.clone(), here.clone());
        let first_held = first.lock(addr, 24, LockMode::Read).await.unwrap();
        let second_held = second.lock(addr, 24, LockMode::Read).await.unwrap();
        let mut bytes = [0; 8];
        first.read_locked(&first_held, 16, &mut bytes).await;
        assert_eq!(&bytes, b"12345678");
        drop(first);
        drop(second_held);
        drop(second);
        assert!(there.try_lock(addr, 24, LockMode::Write).await.unwrap().is_none(), "the first has it");
        here.read_locked(&first_held, 17, &mut bytes[..7]).await;
        assert_eq!(&bytes[..7], b"2345678");
        drop(first_held);
        let mut held = there.lock(addr, 24, LockMode::Write).await.unwrap();
        there.write_locked(&mut held, 16, b"a").await;
        there.unlock(held).await;
        let held = here.lock(addr, 24, LockMode::Read).await.unwrap();
        here.read_locked(&held, 16, &mut bytes).await;
        assert_eq!(&bytes, b"a2345678");
        here.unlock(held).await;
        here.free_locked(addr, 24).await.unwrap();
        assert_eq!(there.lock(addr, 24, LockMode::Read).await.err(), Some(Error::Unallocated { addr }));
    });
}

pub(crate) fn a_thread_holds_many_locks_at_once(nodes: Nodes<'_>) {
    let (mut here, mut there) = (nodes(0), nodes(1));
    let accounts: Vec<Locked<i64>> =
        (0..100).map(|at| Locked::new(&mut here, NodeId(at % 3), 100).unwrap()).collect();
    let mut guards: Vec<_> = accounts.iter().map(|account| account.write(&mut here).unwrap()).collect();
    guards.iter_mut().zip(0..).for_each(|(guard, at)| **guard += at);
    // Not in their order.
    guards.rotate_left(17);
    drop(guards);
    let amount = |account: &Locked<i64>| *same::<i64>(&there, account.addr()).read(&mut there).unwrap();
    assert_eq!(accounts.iter().map(amount).sum::<i64>(), 10_000 + 4950);
}

pub(crate) fn block_locks_let_writers_be_alone_and_readers_together(nodes: Nodes<'_>) {
    let mut all: Vec<_> = (0..3).map(nodes).collect();
    let addr = all[0].alloc(8, NodeId(2), Discipline::Coherent).unwrap();
    let writer = all[0].lock_block(addr, LockMode::Write).unwrap();
    for node in &mut all {
        assert!(node.try_lock_block(addr, LockMode::Read).unwrap().is_none());
        assert!(node.try_lock_block(addr, LockMode::Write).unwrap().is_none());
    }
    all[0].write_word(addr, 7).unwrap();
    drop(writer);
    let first = all[1].lock_block(addr, LockMode::Read).unwrap();
    let mut second = None;
    assert!(
        soon(|| {
            second = all[2].try_lock_block(addr, LockMode::Read).unwrap();
            second.is_some()
        }),
        "readers share"
    );
    assert!(all[0].try_lock_block(addr, LockMode::Write).unwrap().is_none());
    assert_eq!(all[1].read_word(addr), Ok(7));
    drop((first, second));
    assert!(soon(|| all[0].try_lock_block(addr, LockMode::Write).unwrap().is_some()));
}

pub(crate) fn a_batch_does_its_operations_in_order_and_says_what_came_of_each(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    let addr = here.alloc(4096, NodeId(1), Discipline::Coherent).unwrap();
    let nowhere = addr + 8 * 4096;
    let mut batch = Batch::new();
    assert!(batch.is_empty() && batch.write(addr, b"first, and"));
    assert!(batch.read(addr, 5));
    assert!(batch.read(nowhere, 5));
    assert!(batch.write(addr + 7, b"then"));
    assert!(batch.read(addr, 11));
    assert!(!batch.read(addr, 1 << 20), "there is no room for that");
    let outcomes = here.run(&batch).unwrap();
    let unallocated = Error::Unallocated { addr: nowhere };
    let expected =
        [Ok(vec![]), Ok(b"first".to_vec()), Err(unallocated), Ok(vec![]), Ok(b"first, then".to_vec())];
    assert_eq!(outcomes, expected);
}

/// One test for each of them.
macro_rules! everywhere {
    ($nodes:ident) => {
        crate::locks_everywhere::everywhere!($nodes, with copies, too);
        crate::locks_everywhere::everywhere!($nodes:
            what_is_no_lock_is_refused_with_what_is_wrong
            a_thread_holds_many_locks_at_once
            memory_of_other_locks_is_taken_in_and_given_back
        );
    };
    // A lock with copies is that of a whole allocation, in coherent memory, and one of a bounded number that a node is inside of.
    ($nodes:ident, with copies, too) => {
        crate::locks_everywhere::everywhere!($nodes:
            a_counter_misses_no_increment_and_nobody_sees_half_of_one
            readers_go_on_beside_each_other_and_what_they_read_is_not_undone
            regions_of_any_size_travel_whole
            whoever_tries_gets_what_is_free_and_not_what_is_held
            a_wait_ends_in_time_without_the_lock_and_later_waits_get_it
            a_lock_that_was_waited_for_in_vain_still_goes_to_whoever_waits_on
            a_panic_while_writing_poisons_the_value_on_every_node_until_that_is_cleared
            a_freed_lock_is_gone_for_everybody
            locks_are_held_beyond_their_handles_and_apart_from_each_other
            block_locks_let_writers_be_alone_and_readers_together
            a_batch_does_its_operations_in_order_and_says_what_came_of_each
            regions_come_and_go_and_grow_and_are_what_they_were_on_every_node
            nobody_sees_regions_of_two_versions
            a_list_that_cannot_be_changed_so_stays_as_it_was
            a_panic_while_regions_change_poisons_them
            regions_with_a_name_are_found_with_their_room_and_go_with_it
            parts_are_of_one_version_and_what_their_types_say_on_every_node
        );
    };
    ($nodes:ident: $($name:ident)*) => {$(
        #[test]
        fn $name() {
            $nodes(crate::locks_everywhere::$name);
        }
    )*};
}
pub(crate) use everywhere;
