//! A thread of this node wants a lock, has left, or waits no longer.

use alloc::vec::Vec;

use wire::{GlobalAddr, LockEnd, LockKind, LockPacket, Mode, Rules};

use super::record::{Holding, Lock, Thread, Waiter};
use super::store::LockStore;
use super::{Context, LockEffect, LockNode, Ticket, context};
use crate::store::Moment;

impl<R: Rules> LockNode<R> {
    /// A thread wants to enter, and the gate is closed, or does not let it in. [`LockEffect::Entered`] or a failure
    /// follows, perhaps at once. With `once` it does not want to wait for anybody who has the lock.
    ///
    /// All threads of the rack name one length for a lock; what is not so fails.
    pub fn on_lock<S: LockStore>(
        &mut self,
        at: Moment,
        (ticket, mode, once): (Ticket, Mode, bool),
        (lock, len): (GlobalAddr, u32),
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        cx.counters.asked += 1;
        if !self.live.contains(lock.home()) {
            cx.out.push(LockEffect::Failed(ticket, wire::Refusal::NodeDown));
            return;
        }
        let it = self.locks.entry(lock).or_insert_with(|| Lock::new(lock, len));
        if !it.takes_thread(len) {
            cx.out.push(LockEffect::Failed(ticket, wire::Refusal::WrongLength));
            return;
        }
        let after = it.asked;
        it.line_up(Thread { ticket, mode, once, reclaims: false, after });
        it.advance(&mut cx);
        it.give_up_at_once(&mut cx);
        let after = cx.after(it);
        self.after(at, lock, after, store, out);
    }

    /// A thread has left, and the gate was closed.
    pub fn on_left<S: LockStore>(
        &mut self,
        at: Moment,
        lock: GlobalAddr,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let Some(it) = self.locks.get_mut(&lock) else { return };
        it.end_if_left(&mut cx);
        it.leave_room(&mut cx);
        it.advance(&mut cx);
        let after = cx.after(it);
        self.after(at, lock, after, store, out);
    }

    /// A thread waits no longer. False if it is in already, or has failed: then it was told so. What was asked for it comes
    /// all the same, and stays here or goes on.
    pub fn on_cancel<S: LockStore>(
        &mut self,
        at: Moment,
        ticket: Ticket,
        lock: GlobalAddr,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) -> bool {
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let Some(it) = self.locks.get_mut(&lock) else { return false };
        let waited = it.cancel(ticket);
        if waited {
            it.advance(&mut cx);
        }
        let after = cx.after(it);
        self.after(at, lock, after, store, out);
        waited
    }
}

impl Lock {
    /// False if a thread that names this length cannot wait here: the lock has another one.
    ///
    /// A lock that has ended may still have a record here of another length, until all that this node passed it on to have said
    /// that they received it: they may read this node's copy until then, so the thread waits as long.
    pub(super) fn takes_thread(&mut self, len: u32) -> bool {
        if let Some(next) = self.next_len {
            return next == len;
        }
        if self.adopts(len) {
            return true;
        }
        let waits = self.is_passed_on();
        if waits {
            self.next_len = Some(len);
        }
        waits
    }

    /// The lock is still one, with the length that this node knows: threads that name another one, and wait, are wrong.
    pub(super) fn refuse_other_length<S, R>(&mut self, cx: &mut Context<'_, S, R>) {
        if self.next_len.take().is_some() {
            let failed = |thread: Thread| LockEffect::Failed(thread.ticket, wire::Refusal::WrongLength);
            cx.out.extend(self.threads.drain(..).map(failed));
        }
    }

    /// False if this node knows the lock with another length, and has something of it.
    pub(super) fn adopts(&mut self, len: u32) -> bool {
        if self.len != len && self.is_vacant() {
            // Of an allocation that is no more, or named wrongly before.
            self.len = len;
        }
        self.len == len
    }

    /// False if the packet is about another length than this node knows. A node that asks for that hears so: the directory does
    /// not know how long a region is.
    pub(super) fn takes_length<S, R>(&mut self, cx: &mut Context<'_, S, R>, packet: &LockPacket) -> bool {
        if self.adopts(packet.len) {
            return true;
        }
        let is_move =
            matches!(packet.kind, LockKind::Hand | LockKind::Granted) && packet.node != cx.config.id;
        if is_move {
            // Of a lock of another length, which was here before: its mover has not heard that it came.
            let (term, to) = (packet.term, LockEnd::Agent(packet.node));
            let received = packet.reply(LockKind::Received, cx.me(), to);
            cx.send(LockPacket { node: cx.config.id, term, ..received }, None);
        }
        if packet.kind == LockKind::Forward {
            let status = wire::Status::Refused(wire::Refusal::WrongLength);
            let refused = packet.reply(LockKind::Refused, cx.me(), LockEnd::Agent(packet.node));
            cx.send(LockPacket { status, ..refused }, None);
        } else {
            cx.counters.drop(super::LockDrop::Nonsense);
        }
        false
    }

    fn line_up(&mut self, thread: Thread) {
        match &mut self.holding {
            Some(holding) => holding.queue.push_back(Waiter::Local(thread)),
            None => self.threads.push_back(thread),
        }
    }

    fn cancel(&mut self, ticket: Ticket) -> bool {
        let before = self.waiting_threads();
        self.threads.retain(|thread| thread.ticket != ticket);
        if self.threads.is_empty() {
            self.next_len = None;
        }
        if let Some(holding) = &mut self.holding {
            holding
                .queue
                .retain(|waiter| !matches!(waiter, Waiter::Local(thread) if thread.ticket == ticket));
        }
        self.waiting_threads() < before
    }

    pub(super) fn waiting_threads(&self) -> usize {
        let in_queue = self.holding.iter().flat_map(|holding| &holding.queue);
        self.threads.len() + in_queue.filter(|waiter| matches!(waiter, Waiter::Local(_))).count()
    }

    /// Threads that did not want to wait, and have to, as this node knows: it holds the lock, and has not let them in; or what it has
    /// asked for was not to be had, or is for threads that do wait: then nobody answers for these.
    pub(super) fn give_up_at_once<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let holds = self.holding.as_ref().is_some_and(Holding::is_complete);
        if holds || self.request.is_some_and(|request| request.busy || !request.once) {
            self.dismiss_impatient(cx);
        }
    }

    /// Somebody elsewhere has the lock: whoever did not want to wait gives up. What was asked for comes all the same.
    pub(super) fn on_busy<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        if let Some(request) = &mut self.request {
            request.busy = true;
        }
        self.dismiss_impatient(cx);
    }

    fn dismiss_impatient<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let out = &mut *cx.out;
        let mut stays = |thread: &Thread| {
            if thread.once {
                out.push(LockEffect::Busy(thread.ticket));
            }
            !thread.once
        };
        let waiting = self.waiting_threads();
        self.threads.retain(&mut stays);
        if let Some(holding) = &mut self.holding {
            holding.queue.retain(|waiter| match waiter {
                Waiter::Local(thread) => stays(thread),
                Waiter::Remote(..) => true,
            });
        }
        if self.waiting_threads() < waiting {
            self.advance(cx);
        }
    }

    /// The home says that this cannot be locked.
    pub(super) fn on_refused<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &wire::LockPacket,
    ) {
        let wire::Status::Refused(why) = packet.status else {
            return cx.counters.drop(super::LockDrop::Nonsense);
        };
        let Some(request) = self.request.filter(|request| request.number == packet.number) else {
            cx.counters.drop(super::LockDrop::Late);
            if packet.number == 0 {
                // The lock that was here is no more. Whether there is one now, its home knows.
                self.since = self.since.max(packet.term);
                self.arrived = None;
                self.leave_room(cx);
                self.ask_again(cx);
            }
            return;
        };
        if self.names_loss(cx, packet) {
            return;
        }
        self.request = None;
        self.arrived = None;
        let out = &mut *cx.out;
        self.threads.retain(|thread| {
            let asked = packet.number.wrapping_sub(thread.after).cast_signed() > 0;
            let asked = asked && thread.reclaims == request.reclaims.is_some();
            if asked {
                out.push(LockEffect::Failed(thread.ticket, why));
            }
            !asked
        });
        self.leave_room(cx);
        self.advance(cx);
    }
}
