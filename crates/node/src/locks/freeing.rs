//! A lock ends: its allocation is about to be freed.
//!
//! Whoever wants that has the lock to write, so nobody else has anything of it. (A lost one is reclaimed first.) The home
//! forgets it, and the switch. Whoever waits asks the home again, which knows whether the region is still allocated, or anew.
//! So an allocation is given back first, and then its locks end: in between whoever gets it waits for that end.
//!
//! # What is late
//! The terms of the next lock of that name begin behind those of this one, so no grant and no data of this one count any
//! more. (Its home remembers one number for all locks that are no more, not one for each.) Requests have numbers, so a
//! refusal by the old lock is not taken for one by the new. A request that comes late would make a lock anew, perhaps of another
//! length than the region has by then: so one that does not say that it knows of the end makes none, and whoever it is for, if he
//! still wants the lock, asks again. What the switch is asked to keep has numbers, and what it is asked to forget names a term,
//! so late copies of that do nothing.

use alloc::vec::Vec;

use wire::{GlobalAddr, LockEnd, LockKind, LockPacket, Mode, Refusal, Rules, Status, Term};

use super::home::Keeper;
use super::record::{Again, Freeing, Lock, Waiter};
use super::store::LockStore;
use super::{Context, LockDrop, LockEffect, LockMessage, LockNode, Ticket, context};
use crate::store::Moment;

impl<R: Rules> LockNode<R> {
    /// A thread that was in the lock to write, and has told its copy that it never leaves, wants it to be no more; or to be lost
    /// again, if it has reclaimed it. [`LockEffect::Freed`] follows.
    pub fn on_free<S: LockStore>(
        &mut self,
        at: Moment,
        (ticket, lost): (Ticket, bool),
        lock: GlobalAddr,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let it = self.locks.get_mut(&lock);
        let holding = it.and_then(|it| {
            let term = it.holding.as_ref().filter(|holding| holding.is_complete())?.term;
            Some((it, term))
        });
        let Some((it, term)) = holding else {
            // Its home has died since, and the lock with it.
            out.push(LockEffect::Freed(ticket));
            return self.on_left(at, lock, store, out);
        };
        // Whoever comes from now on is reported, and asks the home at the end.
        let _ = cx.store.close(lock);
        it.freeing = Some(Freeing { ticket, term, lost, again: Again::first(&cx) });
        if it.report.is_none() {
            it.send_free(&mut cx);
        }
        let after = cx.after(it);
        self.after(at, lock, after, store, out);
    }

    /// At its home: the lock is forgotten, here and in the switch.
    pub(super) fn on_free_packet<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        if self.rebuilding.is_some() {
            // Holders ask again when their reports are answered.
            return self.counters.drop(LockDrop::NotCurrent);
        }
        let lock = packet.lock;
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let from = LockEnd::Home(cx.config.id);
        let before = |home: &&mut super::home::HomeLock| packet.term >= home.term;
        match self.homes.get_mut(&lock).filter(before).map(|home| &mut home.keeper) {
            Some(Keeper::Asked(entry, waiting)) => {
                // It waits for the switch's answer, as requests do: an INSTALL on its way would make an entry of a lock that is no
                // more. If the answer was lost, nobody else may ask for it.
                let entry = *entry;
                if !waiting.contains(packet) {
                    waiting.push(*packet);
                }
                cx.counters.drop(LockDrop::NotCurrent);
                return self.ask_switch(at, (lock, packet.len), entry, store, out);
            }
            Some(keeper @ (Keeper::Switch | Keeper::Ending(..))) => {
                if *keeper == Keeper::Switch {
                    *keeper = Keeper::Ending(*packet, Vec::new());
                }
                return cx.send(packet.reply(LockKind::Remove, from, LockEnd::Switch), None);
            }
            Some(Keeper::Here | Keeper::Nobody) => self.directory.remove(lock),
            // It is gone already; the lock that may be there by now is another one.
            None => {}
        }
        cx.send(packet.reply(LockKind::Freed, from, LockEnd::Agent(packet.node)), None);
        if self.homes.get(&lock).is_some_and(|home| packet.term >= home.term) {
            self.forget(at, packet, store, out);
        }
    }

    /// These blocks of this node's memory belong to no allocation any more: nothing of a lock is written there from now on. The
    /// lock ends when who has given them back ends it, or with the epoch, if he does not: then nobody has it after that.
    pub fn on_blocks_ended(&mut self, first: GlobalAddr, bytes: u64) {
        let end = GlobalAddr::from_bits(first.bits() + bytes);
        // One that begins before them may reach into them.
        let before = self.homes.range(..first).next_back();
        let reaches = before
            .filter(|(lock, home)| lock.bits() + u64::from(wire::region_bytes(home.len)) > first.bits());
        let from = reaches.map_or(first, |(lock, _)| *lock);
        let freed: Vec<GlobalAddr> = self.homes.range(from..end).map(|(lock, _)| *lock).collect();
        for lock in freed {
            let home = self.homes.get_mut(&lock).expect("it was there");
            home.freed = true;
            // Nobody has anything of such a lock.
            if home.lent.is_none() && home.keeper == Keeper::Nobody {
                self.end_freed(lock, Term::NONE);
            }
        }
    }

    /// A lock whose memory was given back is no more; its terms have come so far.
    pub(super) fn end_freed(&mut self, lock: GlobalAddr, latest: Term) {
        let Some(home) = self.homes.remove(&lock) else { return };
        let lent = home.lent.map_or(Term::NONE, |(_, term)| term);
        self.ended = self.ended.max(home.term.max(lent).max(latest).next());
    }

    /// The switch has forgotten it.
    pub(super) fn on_removed<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let (lock, term) = (packet.lock, packet.term);
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let (free, waiting) = match self.homes.get_mut(&lock).map(|home| &mut home.keeper) {
            Some(Keeper::Ending(free, waiting)) if free.term == term => (*free, core::mem::take(waiting)),
            _ => return cx.counters.drop(LockDrop::Late),
        };
        let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(free.node));
        cx.send(packet.reply(LockKind::Freed, from, to), None);
        self.forget(at, &free, store, out);
        for packet in waiting {
            self.on_directory_packet(at, &LockMessage { packet, data: None }, store, out);
        }
    }

    /// A lock of this home is no more, or lost again.
    fn forget<S: LockStore>(
        &mut self,
        at: Moment,
        free: &LockPacket,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let Some(mut home) = self.homes.remove(&free.lock) else { return };
        let (why, next) = if is_of_lost(free) && !home.freed {
            (Refusal::Lost, free.term.next())
        } else {
            self.ended = self.ended.max(free.term.next());
            (Refusal::Unallocated, Term::NONE)
        };
        for packet in core::mem::take(&mut home.early) {
            self.refuse(at, &packet, why, store, out);
        }
        if why == Refusal::Lost {
            // Another loss than the one that was taken: a late copy of this does nothing to who takes it next.
            home.comes_back(next);
            (home.since, home.lost, home.keeper) = (next, true, Keeper::Nobody);
            self.homes.insert(free.lock, home);
        }
    }
}

/// True if what ends is a holder's turn at a lock that it has reclaimed: the lock is lost again.
fn is_of_lost(free: &LockPacket) -> bool {
    free.mode == Mode::Read
}

impl Lock {
    pub(super) fn send_free<S, R>(&self, cx: &mut Context<'_, S, R>) {
        let Some(Freeing { term, lost, .. }) = self.freeing else { return };
        let mode = if lost { Mode::Read } else { Mode::Write };
        let free = LockPacket { term, mode, ..self.packet(cx, LockKind::Free) };
        cx.send(LockPacket { to: LockEnd::Home(self.at.home()), ..free }, None);
    }

    /// The home says that the lock is no more.
    pub(super) fn on_freed<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        if self.freeing.is_none_or(|freeing| freeing.term != packet.term) {
            return cx.counters.drop(LockDrop::Late);
        }
        self.end(cx);
        self.advance(cx);
    }

    /// The lock is no more. [`Lock::advance`] has to follow.
    pub(super) fn end<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let Some(Freeing { ticket, term, .. }) = self.freeing.take() else { return };
        cx.out.push(LockEffect::Freed(ticket));
        let Some(holding) = self.holding.take_if(|holding| holding.term == term) else {
            return self.leave_room(cx);
        };
        // Whoever is still on the way to this queue is sent to the home.
        self.last = Some((holding.term, holding.known));
        self.since = self.since.max(holding.term.next());
        let status = Status::Refused(Refusal::Unallocated);
        for waiter in holding.queue {
            match waiter {
                Waiter::Local(thread) => self.threads.push_back(thread),
                Waiter::Remote(node, _) => {
                    // Not a refusal of anything that it asked for by number: it asks the home.
                    let term = self.since;
                    let refused = LockPacket { status, term, ..self.packet(cx, LockKind::Refused) };
                    cx.send(LockPacket { to: LockEnd::Agent(node), ..refused }, None);
                }
            }
        }
        cx.store.release(self.at);
        self.has_capacity = false;
        cx.freed_room = true;
    }
}
