//! What a node counts of locks that somebody wants to know about: how long its threads wait and hold, and who is there.
//!
//! Threads tell of themselves, beside the machine: it has no clock, and no thread waits without having come through here. What must
//! always hold: a thread that finds its lock here and open reads no clock and looks for nothing; there are [`MOST_WATCHED`] locks at
//! most, and which they are follows from what was asked for, in order, and from what was counted.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sorted::Map;
use wire::{GlobalAddr, Mode, Nanos};

use super::LockCopies;
use super::times::{Histogram, Times};

/// Locks that one node watches at a time. One more takes the place of the one of which least was counted.
pub const MOST_WATCHED: usize = 256;

/// Bytes in front of a value. The second word is its fencing number.
const HEADER: u32 = 16;

/// The locks that a node watches.
pub struct LockWatches {
    /// Times are counted from then on.
    started: Instant,
    /// How many: where there are none, nothing is looked for.
    count: AtomicU64,
    all: Mutex<Map<GlobalAddr, Arc<LockWatch>>>,
}

/// One of them.
#[derive(Debug)]
pub struct LockWatch {
    name: Box<str>,
    making: u64,
    /// Bytes of its region.
    len: u32,
    /// Threads of this node that wait now.
    waiting: AtomicU64,
    waits: Histogram,
    holds: Histogram,
    /// Since when somebody waits for the writer that is inside; 0: nobody does.
    awaited: AtomicU64,
    /// The largest fencing number that was seen here.
    fence: AtomicU64,
}

/// What is known of a lock on one node, at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WatchedLock {
    /// Its name.
    pub name: Box<str>,
    /// Where it is.
    pub addr: GlobalAddr,
    /// Which of all that were ever made under this name.
    pub making: u64,
    /// The node has a copy, and threads may read it without asking.
    pub may_read: bool,
    /// The same, to write: the lock is here, and stays until somebody else wants it.
    pub may_write: bool,
    /// Threads that are inside to read.
    pub readers: u32,
    /// A thread is inside to write.
    pub writer: bool,
    /// Threads that wait.
    pub waiting: u64,
    /// The last fencing number that this node knows; 0: none. Its lower half counts write grants.
    pub fence: u64,
    /// Waits of threads that had to ask, and got in.
    pub waits: Times,
    /// How long threads held it to write, of some; of others, for whom somebody waited, how long somebody did.
    pub holds: Times,
}

/// A thread that waits. It does not any more when this is dropped.
pub struct Waiting {
    watch: Arc<LockWatch>,
    since: Nanos,
}

impl Default for LockWatches {
    fn default() -> Self {
        Self { started: Instant::now(), count: AtomicU64::new(0), all: Mutex::default() }
    }
}

impl LockWatches {
    /// The time, as all here count it.
    pub fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// From now on this node counts what its threads do with the region of `len` bytes there, which somebody made under this name and
    /// number.
    pub fn watch(&self, (addr, len): (GlobalAddr, u32), name: &str, making: u64) {
        let mut all = self.all();
        if all.get(&addr).is_some_and(|there| there.making == making && *there.name == *name) {
            return;
        }
        // Whatever was there is no more.
        all.remove(&addr);
        if all.len() >= MOST_WATCHED {
            let quietest = all.iter().min_by_key(|(addr, there)| (there.counted(), **addr));
            let quietest = *quietest.expect("there are some").0;
            all.remove(&quietest);
        }
        all.insert(addr, Arc::new(LockWatch::new(name, making, len)));
        self.count.store(all.len() as u64, Release);
    }

    /// There is no such lock any more.
    pub fn unwatch(&self, addr: GlobalAddr) {
        self.keep(|at, _| *at != addr);
    }

    /// The same of what has this name.
    pub fn unwatch_named(&self, name: &str) {
        self.keep(|_, watch| *watch.name != *name);
    }

    fn keep(&self, mut keeps: impl FnMut(&GlobalAddr, &LockWatch) -> bool) {
        if self.are_some() {
            let mut all = self.all();
            all.retain(|addr, watch| keeps(addr, watch));
            self.count.store(all.len() as u64, Release);
        }
    }

    /// What is counted of a lock, if anything is.
    #[inline]
    pub fn of(&self, addr: GlobalAddr) -> Option<Arc<LockWatch>> {
        if self.are_some() { self.found(addr) } else { None }
    }

    /// Something is counted.
    #[inline]
    pub fn are_some(&self) -> bool {
        self.count.load(Acquire) > 0
    }

    #[cold]
    fn found(&self, addr: GlobalAddr) -> Option<Arc<LockWatch>> {
        self.all().get(&addr).cloned()
    }

    fn all(&self) -> MutexGuard<'_, Map<GlobalAddr, Arc<LockWatch>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockWatch {
    fn new(name: &str, making: u64, len: u32) -> Self {
        Self {
            name: name.into(),
            making,
            len,
            waiting: AtomicU64::new(0),
            waits: Histogram::default(),
            holds: Histogram::default(),
            awaited: AtomicU64::new(0),
            fence: AtomicU64::new(0),
        }
    }

    /// A thread begins to wait.
    pub fn wait(self: Arc<Self>, now: Nanos) -> Waiting {
        self.waiting.fetch_add(1, Relaxed);
        Waiting { watch: self, since: now }
    }

    /// A thread has held it so long to write, and is about to leave.
    pub fn held(&self, time: Nanos) {
        self.awaited.store(0, Relaxed);
        self.holds.add(time);
    }

    /// A thread that was inside to write has left, and somebody waited: how long, counts as a hold if no longer one was.
    pub fn left(&self, now: Nanos) {
        let since = self.awaited.swap(0, Relaxed);
        if since > 0 {
            self.holds.add(Nanos(now.0.saturating_sub(since)));
        }
    }

    /// Somebody was inside whose copy nobody else finds: this was its fencing number.
    pub fn saw(&self, fence: u64) {
        self.fence.fetch_max(fence, Relaxed);
    }

    /// Whether somebody waits for the writer that is inside.
    fn is_awaited(&self, now: Option<Nanos>) {
        match now {
            // Since then, if nobody did before.
            Some(now) => drop(self.awaited.compare_exchange(0, now.0.max(1), Relaxed, Relaxed)),
            None => self.awaited.store(0, Relaxed),
        }
    }

    fn counted(&self) -> u64 {
        self.waits.times().count() + self.holds.times().count() + self.waiting.load(Relaxed)
    }
}

impl Waiting {
    /// The thread is in: it has waited since then, or since it asked before.
    pub fn is_in(self, since: Option<Nanos>, now: Nanos) {
        let since = since.unwrap_or(self.since);
        self.watch.waits.add(Nanos(now.0.saturating_sub(since.0)));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.watch.waiting.fetch_sub(1, Relaxed);
    }
}

impl LockCopies {
    /// The machine has closed a gate with a writer behind it, or opened one.
    #[inline]
    pub(super) fn is_awaited(&self, lock: GlobalAddr, is_so: bool) {
        if self.watches.are_some() {
            self.tell_awaited(lock, is_so);
        }
    }

    #[cold]
    fn tell_awaited(&self, lock: GlobalAddr, is_so: bool) {
        if let Some(watch) = self.watches.found(lock) {
            watch.is_awaited(is_so.then(|| self.watches.now()));
        }
    }

    /// What this node watches.
    #[inline]
    pub const fn watches(&self) -> &LockWatches {
        &self.watches
    }

    /// What is known of the locks that it watches, by address: of those behind this one, at most so many.
    pub fn watched(&self, behind: GlobalAddr, most: usize) -> Vec<WatchedLock> {
        let all: Vec<_> = {
            let all = self.watches.all();
            let behind = (std::ops::Bound::Excluded(behind), std::ops::Bound::Unbounded);
            all.range(behind).take(most).map(|(addr, watch)| (*addr, Arc::clone(watch))).collect()
        };
        all.into_iter().map(|(addr, watch)| self.look_at(addr, &watch)).collect()
    }

    fn look_at(&self, addr: GlobalAddr, watch: &LockWatch) -> WatchedLock {
        let (mut open, mut users) = (None, node::locks::Users::default());
        if let Some((number, generation)) = self.look_up((addr, watch.len)) {
            let slot = self.slot(number);
            (open, users) = (slot.gate().is_open_for(), slot.gate().users());
            if (open.is_some() || !users.is_none()) && watch.len >= HEADER {
                let fence = self.data.get(slot.at().load(Relaxed) as usize + 1, 1)[0].load(Relaxed);
                // Nobody keeps the copy here. If it still is what it was, this was its word.
                std::sync::atomic::fence(Acquire);
                if slot.gate().generation() == generation {
                    watch.saw(fence);
                }
            }
        }
        WatchedLock {
            name: watch.name.clone(),
            addr,
            making: watch.making,
            may_read: open.is_some(),
            may_write: open == Some(Mode::Write),
            readers: users.readers,
            writer: users.writer,
            waiting: watch.waiting.load(Relaxed),
            fence: watch.fence.load(Relaxed),
            waits: watch.waits.times(),
            holds: watch.holds.times(),
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::NodeId;

    use super::*;

    fn at(number: u64) -> GlobalAddr {
        GlobalAddr::new(NodeId(1), 64 * number)
    }

    #[test]
    fn what_is_not_watched_is_not_found() {
        let watches = LockWatches::default();
        assert!(watches.of(at(1)).is_none());
        watches.unwatch(at(1));
        watches.watch((at(1), 24), "one", 7);
        assert!(watches.of(at(1)).is_some() && watches.of(at(2)).is_none());
        watches.unwatch(at(1));
        assert!(watches.of(at(1)).is_none());
    }

    #[test]
    fn a_lock_is_counted_on_when_it_is_opened_again_and_anew_when_it_was_made_anew() {
        let copies = LockCopies::new(0);
        let count = |making| {
            copies.watches().watch((at(1), 24), "one", making);
            let watch = copies.watches().of(at(1)).expect("it is watched");
            Arc::clone(&watch).wait(Nanos(10)).is_in(None, Nanos(30));
            let given_up = watch.wait(Nanos(30));
            assert_eq!(copies.watched(GlobalAddr::default(), 9)[0].waiting, 1);
            drop(given_up);
            let now = copies.watched(GlobalAddr::default(), 9).remove(0);
            (now.waits.count(), now.waits.sum, now.waiting)
        };
        assert_eq!((count(7), count(7), count(8)), ((1, Nanos(20), 0), (2, Nanos(40), 0), (1, Nanos(20), 0)));
    }

    #[test]
    fn a_writer_for_whom_somebody_waits_is_timed_from_then_on_until_it_leaves() {
        let copies = LockCopies::new(0);
        copies.watches().watch((at(1), 24), "one", 7);
        let watch = copies.watches().of(at(1)).expect("it is watched");
        let holds = || (watch.holds.times().count(), watch.holds.times().sum);
        watch.left(Nanos(5));
        assert_eq!(holds(), (0, Nanos(0)), "nobody waited");
        watch.is_awaited(Some(Nanos(10)));
        watch.is_awaited(Some(Nanos(20)));
        watch.left(Nanos(50));
        assert_eq!(holds(), (1, Nanos(40)), "from the first who waited");
        watch.is_awaited(Some(Nanos(60)));
        watch.is_awaited(None);
        watch.left(Nanos(70));
        assert_eq!(holds(), (1, Nanos(40)), "he has given up");
        watch.is_awaited(Some(Nanos(80)));
        watch.held(Nanos(100));
        watch.left(Nanos(90));
        assert_eq!(holds(), (2, Nanos(140)), "it is counted once");
    }

    #[test]
    fn one_lock_too_many_takes_the_place_of_the_quietest() {
        let copies = LockCopies::new(0);
        let most = MOST_WATCHED as u64;
        for number in 1..=most {
            copies.watches().watch((at(number), 24), "some", number);
            if number != 5 {
                copies.watches().of(at(number)).expect("it is watched").held(Nanos(1));
            }
        }
        copies.watches().watch((at(most + 1), 24), "more", 1);
        assert!(copies.watches().of(at(5)).is_none() && copies.watches().of(at(most + 1)).is_some());
        let first = copies.watched(GlobalAddr::default(), 5);
        assert_eq!(first.iter().map(|lock| lock.making).collect::<Vec<_>>(), [1, 2, 3, 4, 6]);
        let all = copies.watched(first[4].addr, MOST_WATCHED);
        assert_eq!(all.len() + first.len(), MOST_WATCHED);
    }
}
