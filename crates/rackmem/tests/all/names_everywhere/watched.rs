//! What nodes say of the locks whose names were opened through them.

use std::thread;
use std::time::{Duration, Instant};

use rackmem::{LockTimes, Locked, NodeHandle, NodeId, Value, WatchedLock};

use super::{Nodes, names_at};

/// How long the lock is held while another thread waits.
const HELD: Duration = Duration::from_millis(100);
/// Longer than anything here takes on a busy machine.
const MOST_WAIT: Duration = Duration::from_secs(60);

/// What each node says of a lock.
fn of_all(handle: &mut NodeHandle, name: &str) -> [Option<WatchedLock>; 3] {
    [0, 1, 2].map(|node| {
        let all = handle.watched_locks(NodeId(node)).expect("the node is there");
        all.into_iter().find(|lock| *lock.name == *name)
    })
}

/// Times of about so long, with a factor of ten to both sides.
fn about(times: &LockTimes, long: Duration) -> u64 {
    let long = long.as_nanos() as u64;
    let fits = |bucket: &usize| {
        LockTimes::at_most(*bucket).is_some_and(|most| (long / 10..long * 10).contains(&most.0))
    };
    (0..times.buckets.len()).filter(fits).map(|bucket| times.buckets[bucket]).sum()
}

pub(crate) fn it_is_seen_who_holds_a_named_lock_and_who_waits_and_how_long_that_took(nodes: Nodes<'_>) {
    let mut here = nodes(0);
    for home in 0..3 {
        let name = &*names_at(&here, home, "watched");
        let made = here.named::<Locked<u64>>(name).create(1).unwrap();
        let mut looker = nodes(2);
        let guard = made.write(&mut here).unwrap();
        let fence = thread::scope(|scope| {
            scope.spawn(|| {
                let mut there = nodes(1);
                let same = there.named::<Locked<u64>>(name).open().unwrap();
                *same.write(&mut there).unwrap() += 1;
            });
            let began = Instant::now();
            loop {
                let [first, second, third] = of_all(&mut looker, name);
                let first = first.expect("it was made there");
                assert!(first.writer && first.readers == 0 && third.is_none(), "{first:?}, {third:?}");
                if second.is_some_and(|lock| lock.waiting == 1 && !lock.writer) {
                    break;
                }
                assert!(began.elapsed() < MOST_WAIT, "nobody waits");
                thread::yield_now();
            }
            thread::sleep(HELD);
            let fence = guard.fence();
            drop(guard);
            fence
        });
        let [first, second, _] = of_all(&mut looker, name).map(Option::unwrap_or_default);
        assert_eq!((first.writer, first.may_write, first.waiting), (false, false, 0), "it has gone on");
        assert_eq!((second.writer, second.may_write, second.waiting), (false, true, 0), "and stays there");
        assert_eq!((first.fence, second.fence), (fence, fence + 1));
        assert_eq!(
            (first.waits.count(), second.waits.count(), about(&second.waits, HELD)),
            (u64::from(home > 0), 1, 1),
            "{second:?}"
        );
        assert_eq!(
            (first.holds.count(), about(&first.holds, HELD), second.holds.count()),
            (1, 1, 1),
            "{first:?}"
        );
        here.remove_name(name).unwrap();
        assert_eq!(of_all(&mut looker, name)[0], None, "who removes it watches it no more");
    }
    here.named::<Value<u64>>("value").create(1).unwrap();
    assert!(of_all(&mut here, "value").iter().all(Option::is_none), "it is no lock");
    here.remove_name("value").unwrap();
}
