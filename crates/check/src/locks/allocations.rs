//! Locks end, and begin anew: what the application and its allocator do.
//!
//! As the library does it: whoever is inside to write gives the allocation back, and then ends the lock; in between, and while
//! the lock ends, the region may be allocated anew. What must hold: only who is inside, or was told that the lock is lost, gives it
//! back, and only once.

use std::collections::BTreeMap;

use node::{LockMessage, Ticket};
use wire::{Incarnation, LockRules, Mode};

use super::{Locks, Thread, Want};
use crate::rack::{Bench, Control};

/// The allocations of each lock's region, in each life of its home.
#[derive(Clone, Debug, Default)]
pub(super) struct Allocations {
    /// How often it was freed or allocated: odd while it is free.
    changes: BTreeMap<(usize, Incarnation), u32>,
    /// How often the lock was ended as a lost one.
    lost: BTreeMap<(usize, Incarnation), u32>,
}

impl Allocations {
    /// Which allocation the region belongs to; to none if this is odd.
    pub(super) fn now(&self, lock: usize, life: Incarnation) -> u32 {
        self.changes.get(&(lock, life)).copied().unwrap_or(0)
    }

    pub(super) fn ended_as_lost(&self, lock: usize, life: Incarnation) -> u32 {
        self.lost.get(&(lock, life)).copied().unwrap_or(0)
    }
}

/// True if the number is that of an allocation.
pub(super) const fn is_allocated(change: u32) -> bool {
    change.is_multiple_of(2)
}

impl<R: LockRules> Locks<R> {
    /// True if the lock's home runs, in the life that is meant.
    fn home_lives(&self, control: &Control, want: Want) -> bool {
        let home = self.locks[want.lock].0.home();
        control.works(home) && control.life(home, home) == want.life
    }

    /// The region is given back, or given out again.
    fn change_allocation<M: Copy>(&mut self, bench: &mut Bench<M>, want: Want) {
        let (lock, _) = self.locks[want.lock];
        let change = self.allocations.changes.entry((want.lock, want.life)).or_default();
        *change += 1;
        let change = *change;
        bench.note(Some(lock.bits()), || format!("region of lock {} changes hands: {change}", want.lock));
        bench.touch(Some(lock.home()));
        let store = &mut self.nodes[lock.home().index()].1;
        if is_allocated(change) {
            // What was there before must not be seen any more.
            let number = u64::from(change) * 1_000_000;
            store.unallocated.remove(&lock);
            store.home.insert(lock, number);
            self.truth.insert((want.lock, want.life, change), number);
        } else {
            store.unallocated.insert(lock);
        }
    }

    /// Allocates the region anew, if it is free and the dice say so. True if it did.
    pub(super) fn allocates<M: Copy>(&mut self, bench: &mut Bench<M>, want: Want) -> bool {
        let free = !is_allocated(want.allocation) && self.home_lives(&bench.control, want);
        if free && bench.random.per_mille(300) {
            self.change_allocation(bench, want);
            return true;
        }
        false
    }

    /// A thread that is inside to write gives the region back, if the dice say so. True if it did.
    pub(super) fn gives_back<M: Copy>(&mut self, bench: &mut Bench<M>, thread: usize, want: Want) -> bool {
        let frees = want.mode == Mode::Write
            && is_allocated(want.allocation)
            && bench.random.per_mille(self.plan.frees)
            && self.home_lives(&bench.control, want);
        if frees {
            self.change_allocation(bench, want);
            self.threads[thread] = Thread::Ending(want);
        }
        frees
    }

    /// Having given back the region, it ends the lock.
    pub(super) fn end_lock<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
    ) -> Result<(), String> {
        let node = self.node_of(thread);
        let (lock, _) = self.locks[want.lock];
        bench.note(Some(lock.bits()), || format!("thread {thread} ends {want:?}"));
        self.threads[thread] = Thread::Freeing(want, false);
        let at = bench.moment();
        let (machine, store) = &mut self.nodes[node.index()];
        store.end(lock);
        machine.on_free(at, Ticket(thread as u32), lock, store, &mut self.out);
        self.drain(bench, node)
    }

    /// A thread was told that the lock is lost: perhaps it gives the region back, and ends the lock.
    pub(super) fn free_lost<M: Copy + From<LockMessage>>(
        &mut self,
        bench: &mut Bench<M>,
        thread: usize,
        want: Want,
    ) -> Result<(), String> {
        // Somebody else may have ended what was lost, and be using what is there now.
        let is_same = self.allocations.now(want.lock, want.life) == want.allocation
            && self.allocations.ended_as_lost(want.lock, want.life) == want.losses;
        let frees = is_same && is_allocated(want.allocation) && self.home_lives(&bench.control, want);
        if !frees || !bench.random.per_mille(4 * self.plan.frees) {
            return Ok(());
        }
        self.change_allocation(bench, want);
        let node = self.node_of(thread);
        let lock = self.locks[want.lock];
        bench.note(Some(lock.0.bits()), || format!("thread {thread} ends what is lost: {want:?}"));
        self.threads[thread] = Thread::Freeing(want, true);
        let at = bench.moment();
        let (machine, store) = &mut self.nodes[node.index()];
        machine.on_free_lost(at, Ticket(thread as u32), lock, store, &mut self.out);
        self.drain(bench, node)
    }

    /// The lock has ended.
    pub(super) fn freed(&mut self, thread: usize, want: Want, lost: bool) {
        self.threads[thread] = Thread::Idle;
        self.seen.freed += 1;
        if lost {
            self.seen.freed_lost += 1;
            self.maybe_lost.remove(&(want.lock, want.life));
            *self.allocations.lost.entry((want.lock, want.life)).or_default() += 1;
        }
    }
}
