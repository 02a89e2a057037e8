//! A lost lock is taken again, by a thread that knows that its data are gone.
//!
//! Whoever was told that a lock is lost may give back its memory, or write it anew. Either way it first has the lock to itself:
//! it *reclaims* it. The home lends the lock, with whatever bytes it has, to one node; everybody else waits in its queue, as for any
//! writer. So nobody gets a fresh lock of memory that is about to be given back, and nobody who allocates that memory anew
//! meets the loss of the allocation before.
//!
//! # What must always hold
//! - A reclaim takes the loss that it names, and no later one: the first answer of the home says which loss there is.
//! - Until data come from whoever took it, the lock counts as lost if that node dies, or never hears of it.
//! - Only who reclaims gets in without data. Threads of the same node that want the lock as it was are told that it is lost.

use alloc::vec::Vec;

use wire::{GlobalAddr, LockEnd, LockKind, LockPacket, Mode, Refusal, Rule, Rules, Status, Term};

use super::home::{Entry, HomeLock, Keeper};
use super::record::{Lock, Thread};
use super::store::LockStore;
use super::{Context, LockEffect, LockNode, Ticket, context};
use crate::store::Moment;

impl<R: Rules> LockNode<R> {
    /// A thread that was told that the lock is lost wants it all the same, to write. [`LockEffect::Entered`] follows, and what
    /// it finds means nothing; or a failure: [`Refusal::Outdated`] if the lock is not lost any more. It cannot be cancelled.
    pub fn on_reclaim<S: LockStore>(
        &mut self,
        at: Moment,
        ticket: Ticket,
        (lock, len): (GlobalAddr, u32),
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        if !self.live.contains(lock.home()) {
            return out.push(LockEffect::Failed(ticket, Refusal::NodeDown));
        }
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let it = self.locks.entry(lock).or_insert_with(|| Lock::new(lock, len));
        if !it.takes_thread(len) {
            return cx.out.push(LockEffect::Failed(ticket, Refusal::WrongLength));
        }
        if it.holds() || it.copy.is_some() {
            return cx.out.push(LockEffect::Failed(ticket, Refusal::Outdated));
        }
        // Before those that want the lock as it was.
        let after = it.asked;
        it.threads.push_front(Thread { ticket, mode: Mode::Write, once: false, reclaims: true, after });
        it.advance(&mut cx);
        let after = cx.after(it);
        self.after(at, lock, after, store, out);
    }

    /// At the home: a node wants a lost lock.
    pub(super) fn on_reclaim_packet<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        if let Some(rebuilding) = &mut self.rebuilding {
            if !rebuilding.parked.contains(packet) {
                rebuilding.parked.push(*packet);
            }
            return;
        }
        let lock = packet.lock;
        let Some(home) = self.homes.get_mut(&lock).filter(|home| home.lost) else {
            return self.refuse(at, packet, Refusal::Outdated, store, out);
        };
        // Another length is that of another allocation, if there is one that has capacity for it.
        if home.len != packet.len
            && let Err(why) = store.may_lock(lock, packet.len)
        {
            return self.refuse(at, packet, why, store, out);
        }
        match home.lent {
            None if packet.term == home.term || !self.rules.holds(Rule::LossesAreNamed) => {
                let term = home.term.next();
                home.lent = Some((packet.node, term));
                home.len = packet.len;
                let entry = Entry { term, holder: Some(packet.node), ..Entry::default() };
                self.place(at, lock, entry, store, out);
                self.lend_what_was_lost(at, lock, store, out);
            }
            None => {
                // Which loss that is, it hears first.
                let term = home.term;
                self.refuse(at, &LockPacket { term, ..*packet }, Refusal::Lost, store, out);
            }
            Some((node, term)) if (node, term) == (packet.node, packet.term.next()) => {
                // It has asked before, and has not heard.
                if let Keeper::Asked(entry, _) = &home.keeper {
                    let (entry, len) = (*entry, home.len);
                    return self.ask_switch(at, (lock, len), entry, store, out);
                }
                self.lend_what_was_lost(at, lock, store, out);
            }
            Some(_) => self.refuse(at, packet, Refusal::Outdated, store, out),
        }
    }

    /// Tells who reclaims a lost lock that it has it, once the entry that says so has a keeper.
    pub(super) fn lend_what_was_lost<S: LockStore>(
        &mut self,
        at: Moment,
        lock: GlobalAddr,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let Some(home) = self.homes.get(&lock).filter(|home| home.lost) else { return };
        let (Some((node, term)), false) = (home.lent, matches!(home.keeper, Keeper::Asked(..))) else {
            return;
        };
        let data = store.home_contents(lock, home.len);
        let lent = LockPacket::new(LockKind::Lent, lock, home.len, node);
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(node));
        cx.send(LockPacket { mode: Mode::Write, term, from, to, ..lent }, Some(data));
    }
}

impl HomeLock {
    /// Nobody has the data, and nobody has taken the lock without them.
    pub(super) const fn is_lost(&self) -> bool {
        self.lost && self.lent.is_none()
    }

    /// The data are here again.
    pub(super) const fn comes_back(&mut self, term: Term) {
        self.term = term;
        self.lent = None;
        self.lost = false;
    }
}

impl Lock {
    /// This term begins here. If it is that of a loss that was asked for, the thread that did so is the first to enter; who
    /// else wanted to reclaim the lock is told that it is not lost any more.
    pub(super) fn settle_reclaims<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, term: Term) {
        let named = self.request.and_then(|request| request.reclaims).filter(|loss| *loss != Term::NONE);
        let mut takes = named.is_some_and(|loss| loss.next() == term);
        let out = &mut *cx.out;
        self.threads.retain_mut(|thread| {
            let stays = !thread.reclaims || core::mem::take(&mut takes);
            thread.reclaims = false;
            if !stays {
                out.push(LockEffect::Failed(thread.ticket, Refusal::Outdated));
            }
            stays
        });
    }

    /// The home says which loss there is, and this node has not named it: it asks for that one.
    pub(super) fn names_loss<S, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) -> bool {
        let named = self.request.is_some_and(|request| request.reclaims.is_some());
        let is_loss = named && packet.status == Status::Refused(Refusal::Lost);
        if is_loss {
            self.expect(cx, Mode::Write, false, Some(packet.term));
            self.send_request(cx);
        }
        is_loss
    }
}
