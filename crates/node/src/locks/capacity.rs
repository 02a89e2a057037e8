//! Copies that have to go, so that others fit; and what follows every input.

use alloc::vec::Vec;

use wire::{Copyset, GlobalAddr, Mode, Nanos, Rules, WaitList};

use super::record::Lock;
use super::store::LockStore;
use super::{Context, LockEffect, LockNode, context};
use crate::store::Moment;

/// What a lock leaves to be done at others.
#[derive(Clone, Copy)]
pub(super) struct After {
    pub(super) victim: Option<GlobalAddr>,
    pub(super) wants_capacity: bool,
    /// When it was to be called, and when it is.
    pub(super) was_due: Nanos,
    pub(super) due: Nanos,
}

impl<R: Rules> LockNode<R> {
    /// Sees to capacity and deadlines when a lock has handled its input.
    pub(super) fn after<S: LockStore>(
        &mut self,
        at: Moment,
        lock: GlobalAddr,
        after: After,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        self.reschedule(lock, after.was_due, after.due);
        if after.wants_capacity && !self.roomless.contains(&lock) {
            self.roomless.push_back(lock);
        }
        if let Some(victim) = after.victim {
            self.evict(at, victim, store, out);
        }
        if !self.roomless.is_empty() {
            self.find_room(at, store, out);
        }
    }

    /// Tries again for the locks that want capacity. Whatever happens here may have made some, or let go of a copy that could
    /// not be given up before.
    fn find_room<S: LockStore>(&mut self, at: Moment, store: &mut S, out: &mut Vec<LockEffect>) {
        while let Some(&next) = self.roomless.front() {
            let mut cx: Context<'_, S, R> =
                context(self.rules, &self.config, &mut self.counters, at, store, out);
            let it = self.locks.get_mut(&next).expect("a lock that wants room is known");
            it.wants_capacity = false;
            it.advance(&mut cx);
            let victim = cx.victim;
            self.schedule(next);
            if !self.locks[&next].wants_capacity {
                self.roomless.pop_front();
                continue;
            }
            let freed = match victim {
                Some(victim) => self.evict(at, victim, store, out),
                None => {
                    self.watch_users(at, store, out);
                    false
                }
            };
            if !freed {
                return;
            }
        }
    }

    /// A copy has to go. True if it is gone; else it goes on its way home, or stays for now.
    fn evict<S: LockStore>(
        &mut self,
        at: Moment,
        victim: GlobalAddr,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) -> bool {
        let Some(it) = self.locks.get_mut(&victim) else { return false };
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        it.give_up(&mut cx);
        let freed = cx.freed_room;
        self.schedule(victim);
        freed
    }

    /// Every copy is in use: whoever leaves one shall be reported.
    fn watch_users<S: LockStore>(&mut self, at: Moment, store: &mut S, out: &mut Vec<LockEffect>) {
        for (lock, it) in self.locks.iter_mut().filter(|(_, it)| it.has_capacity) {
            if store.close(*lock).is_none() {
                let mut cx: Context<'_, S, R> =
                    context(self.rules, &self.config, &mut self.counters, at, store, out);
                it.advance(&mut cx);
            }
        }
    }

    /// Notes when a lock has something to repeat.
    pub(super) fn schedule(&mut self, lock: GlobalAddr) {
        let Some(it) = self.locks.get_mut(&lock) else { return };
        let due = it.due();
        let was = core::mem::replace(&mut it.scheduled, due);
        self.reschedule(lock, was, due);
    }

    fn reschedule(&mut self, lock: GlobalAddr, was: Nanos, due: Nanos) {
        if due == was {
            return;
        }
        if was != Nanos::MAX {
            self.due.remove(&(was, lock));
        }
        if due != Nanos::MAX {
            self.due.insert((due, lock));
        }
    }

    /// The node is about to leave the rack: starts to send home what only it has. To be called again and again. Returns
    /// how many locks have not arrived yet.
    pub fn on_leaving<S: LockStore>(
        &mut self,
        at: Moment,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) -> usize {
        let locks: Vec<GlobalAddr> = self
            .locks
            .iter()
            // What a new epoch has stopped on its way is kept here until its home has the report.
            .filter(|(_, it)| it.holds() || it.moving.is_some() || it.report.is_some())
            .map(|(lock, _)| *lock)
            .collect();
        for &lock in &locks {
            let mut cx: Context<'_, S, R> =
                context(self.rules, &self.config, &mut self.counters, at, store, out);
            let it = self.locks.get_mut(&lock).expect("it is known");
            it.give_up(&mut cx);
            let after = cx.after(it);
            self.after(at, lock, after, store, out);
        }
        locks.len()
    }
}

impl Lock {
    /// Nobody waits for the lock: it stays, and threads enter by themselves. Without that, it goes when they have left.
    pub(super) fn keep<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, mode: Mode) {
        if cx.config.keeps {
            return cx.store.open(self.at, mode);
        }
        if cx.store.close(self.at).is_none() {
            self.give_up(cx);
        }
    }

    /// Gives the lock up, if nobody here is in it or wants it: a copy is dropped, and what may have been written goes home.
    pub(super) fn give_up<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let idle = self.threads.is_empty()
            && self.request.is_none()
            && self.moving.is_none()
            && self.ending.is_none();
        let holding_idle =
            self.holding.as_ref().is_none_or(|holding| holding.is_complete() && holding.queue.is_empty());
        // What was reported stays until the home has heard it; what ends, too.
        let is_awaited = self.report.is_some() || self.freeing.is_some();
        if !idle || !holding_idle || !self.has_capacity || is_awaited {
            return;
        }
        if !cx.store.close(self.at).is_none() {
            // Whoever leaves opens it again.
            return;
        }
        cx.counters.evicted += 1;
        if self.holds() {
            return self.send_move(cx, Copyset::EMPTY, None, WaitList::EMPTY);
        }
        // Data without their header, which may never come: the MOVE was denied. If it does, whoever has sent them has them still.
        let had_data = self.arrived.take().is_some();
        if self.copy.take().is_some() || had_data {
            self.leave_room(cx);
        }
    }
}
