//! Locks end, and begin anew: what the application and its allocator do.
//!
//! As the library does it: whoever is inside to write gives the allocation back, and then ends the lock; in between, and while
//! the lock ends, the region may be allocated anew. Whoever was told that the lock is lost first takes it all the same. What must
//! hold: only who is inside gives the region back, and only once.

use std::collections::BTreeMap;

use node::{LockMessage, Outcome, Ticket};
use wire::{GlobalAddr, Incarnation, Mode, NodeId, Rules};

use super::{Locks, Thread, Want};
use crate::rack::{Bench, Control};

/// The allocations of each lock's region, in each incarnation of its home.
#[derive(Clone, Debug, Default)]
pub(super) struct Allocations {
    /// How often it was freed or allocated: odd while it is free.
    changes: BTreeMap<(usize, Incarnation), u32>,
    /// Not this file, but the machines allocate: then there is nothing at the beginning.
    pub(super) real: bool,
    /// What threads, inside of that lock to write, ask of the real allocator.
    pub(super) frees: Vec<(usize, GlobalAddr)>,
}

impl Allocations {
    /// Which allocation the region belongs to; to none if this is odd.
    pub(super) fn now(&self, lock: usize, incarnation: Incarnation) -> u32 {
        self.changes.get(&(lock, incarnation)).copied().unwrap_or(u32::from(self.real))
    }
}

/// True if the number is that of an allocation.
pub(super) const fn is_allocated(change: u32) -> bool {
    change.is_multiple_of(2)
}

impl<R: Rules> Locks<R> {
    /// True if the lock's home runs, in the incarnation that is meant.
    fn home_incarnations(&self, control: &Control, want: Want) -> bool {
        let home = self.locks[want.lock].0.home();
        control.works(home) && control.known_incarnation(home, home) == want.incarnation
    }

    /// True if the lock's region is allocated; or if the stand-in does that, which is never at rest in between.
    pub(super) fn is_allocated(&self, lock: usize, incarnation: Incarnation) -> bool {
        !self.allocations.real || is_allocated(self.allocations.now(lock, incarnation))
    }

    /// As far as this world is concerned, the lock's region has changed hands so often, and this was written there last.
    pub(crate) fn assume(&mut self, lock: usize, incarnation: Incarnation, (changes, last): (u32, u64)) {
        self.allocations.changes.insert((lock, incarnation), changes);
        self.truth.insert((lock, incarnation, changes), last);
    }

    /// The region is given back, or given out again.
    fn change_allocation<M: Copy>(&mut self, bench: &mut Bench<M>, want: Want) {
        let (lock, _) = self.locks[want.lock];
        let change = self.allocations.changes.entry((want.lock, want.incarnation)).or_default();
        *change += 1;
        let change = *change;
        bench.note(Some(lock.bits()), || format!("region of lock {} changes hands: {change}", want.lock));
        self.touch(Some(lock.home()), Some(lock));
        let store = &mut self.nodes[lock.home().index()].1;
        if is_allocated(change) {
            // What was there before must not be seen any more.
            let number = u64::from(change) * 1_000_000;
            store.unallocated.remove(&lock);
            store.home.insert(lock, number);
            self.truth.insert((want.lock, want.incarnation, change), number);
        } else {
            store.unallocated.insert(lock);
        }
    }

    /// Allocates the region anew, if it is free and the dice say so. True if it did.
    pub(super) fn allocates<M: Copy>(&mut self, bench: &mut Bench<M>, want: Want) -> bool {
        let free = !self.allocations.real
            && !is_allocated(want.allocation)
            && self.home_incarnations(&bench.control, want);
        if free && bench.random.per_mille(300) {
            self.change_allocation(bench, want);
            return true;
        }
        false
    }

    /// A thread that is inside to write gives the region back, if the dice say so. True if it did.
    pub(super) fn gives_back<M: Copy>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        (want, found): (Want, u64),
    ) -> bool {
        let frees = want.mode == Mode::Write
            && is_allocated(want.allocation)
            && bench.random.per_mille(self.plan.frees)
            && self.home_incarnations(&bench.control, want);
        if frees && self.allocations.real {
            self.ask_to_free(thread, (want, found), false);
        } else if frees {
            self.change_allocation(bench, want);
            self.threads[thread] = Thread::Ending(want);
        }
        frees
    }

    /// The real allocator is asked to take the region back.
    fn ask_to_free(&mut self, thread: usize, (want, found): (Want, u64), was_lost: bool) {
        self.threads[thread] = Thread::Returning(want, found, was_lost);
        self.allocations.frees.push((thread, self.locks[want.lock].0));
    }

    /// What the real allocator has said to that; `None` if it was too busy to be asked. As the library does it: if it fails, the
    /// thread leaves like any other, or gives up what it has reclaimed.
    pub(crate) fn on_free_told<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        outcome: Option<Outcome>,
    ) -> Result<(), String> {
        let Thread::Returning(want, found, was_lost) = self.threads[thread] else {
            return Err(format!("thread {thread} frees nothing, and is told {outcome:?}"));
        };
        bench.note(Some(self.locks[want.lock].0.bits()), || {
            format!("thread {thread} is told {outcome:?} of {want:?}")
        });
        let is_gone = self.allocations.now(want.lock, want.incarnation) != want.allocation;
        self.threads[thread] = match outcome {
            Some(Outcome::Freed) if !is_gone && self.home_incarnations(&bench.control, want) => {
                return Err(format!("thread {thread} has freed what is still allocated: {want:?}"));
            }
            Some(Outcome::Freed) => Thread::Ending(want),
            Some(_) if was_lost => return self.end_lock(bench, thread, want, true),
            Some(_) if is_gone => Thread::OnPaper(want),
            _ => Thread::Inside(want, found),
        };
        Ok(())
    }

    /// Every region is allocated, or free, as these say.
    pub(crate) fn compare_allocations<M: Copy>(
        &mut self,
        bench: &mut Bench<M>,
        home: NodeId,
        is_live: impl Fn(GlobalAddr) -> bool,
    ) {
        let incarnation = bench.control.incarnation(home);
        for at in 0..self.locks.len() {
            let (lock, _) = self.locks[at];
            if lock.home() != home {
                continue;
            }
            let now = self.allocations.now(at, incarnation);
            if is_live(lock) != is_allocated(now) {
                bench.note(Some(lock.bits()), || format!("region of lock {at} changes hands: {}", now + 1));
                self.allocations.changes.insert((at, incarnation), now + 1);
            }
        }
    }

    /// A lock for a thread: mostly one that is allocated.
    pub(super) fn pick<M: Copy>(&self, bench: &mut Bench<M>, node: NodeId) -> usize {
        let all = self.locks.len();
        let first = bench.random.below(all);
        if !self.allocations.real || bench.random.per_mille(100) {
            return first;
        }
        let is_there = |lock: &usize| {
            let incarnation = bench.control.known_incarnation(node, self.locks[*lock].0.home());
            is_allocated(self.allocations.now(*lock, incarnation))
        };
        (0..all).map(|n| (first + n) % all).find(is_there).unwrap_or(first)
    }

    /// Having given back the region, it ends the lock; or gives it up, so that it is lost again.
    pub(super) fn end_lock<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
        lost: bool,
    ) -> Result<(), String> {
        let (lock, _) = self.locks[want.lock];
        bench.note(Some(lock.bits()), || format!("thread {thread} ends {want:?}, lost {lost}"));
        self.threads[thread] = Thread::Freeing(want, lost);
        self.losses.ends(thread, bench.now);
        self.call(bench, (self.node_of(thread), Some(lock)), |machine, at, store, out| {
            store.end(lock);
            machine.on_free(at, (Ticket(thread as u32), lost), lock, store, out);
        })
    }

    /// A thread was told that the lock is lost: perhaps it takes it all the same.
    pub(super) fn reclaim<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
    ) -> Result<(), String> {
        if !bench.random.per_mille(4 * self.plan.frees) {
            return Ok(());
        }
        let want = Want { mode: Mode::Write, reclaims: true, ..want };
        let lock = self.locks[want.lock];
        bench.note(Some(lock.0.bits()), || format!("thread {thread} reclaims {want:?}"));
        self.wait(bench, thread, want, |machine, at, store, out| {
            machine.on_reclaim(at, Ticket(thread as u32), lock, store, out);
        })
    }

    /// It has it, alone and without data: it frees the region, writes it anew, or cannot do what it wanted.
    pub(super) fn reclaimed<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
        found: u64,
    ) -> Result<(), String> {
        if !self.losses.is_hollow(want.lock, want.incarnation) {
            return Err(format!("thread {thread} gets a lock without data that was not lost: {want:?}"));
        }
        let now = self.allocations.now(want.lock, want.incarnation);
        self.seen.reclaimed += 1;
        self.waits.entered(thread, want)?;
        if self.allocations.real {
            let inside = (Want { allocation: now, reclaims: false, ..want }, found);
            self.threads[thread] = Thread::Inside(inside.0, found);
            if self.home_incarnations(&bench.control, want) && bench.random.per_mille(600) {
                self.ask_to_free(thread, inside, true);
            }
            return Ok(());
        }
        // Whoever was about to end it died after the region was given back, and perhaps given out again.
        let is_same = now == want.allocation && is_allocated(now);
        let inside = Want { allocation: now, reclaims: false, ..want };
        if !is_same && bench.random.per_mille(500) || bench.random.per_mille(100) {
            self.seen.given_up += 1;
            return self.end_lock(bench, thread, inside, true);
        }
        if !is_allocated(now) {
            return self.end_lock(bench, thread, inside, false);
        }
        if is_same && self.home_incarnations(&bench.control, want) && bench.random.per_mille(600) {
            self.change_allocation(bench, want);
            self.threads[thread] = Thread::Ending(inside);
        } else {
            self.threads[thread] = Thread::Inside(inside, found);
        }
        Ok(())
    }

    /// The lock has ended, or is lost again.
    pub(super) fn freed(&mut self, thread: usize, want: Want, lost: bool) {
        self.threads[thread] = Thread::Idle;
        self.seen.freed += 1;
        if !lost {
            self.losses.ended(thread, want);
        }
    }
}
