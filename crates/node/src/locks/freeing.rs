//! A lock ends: its allocation is about to be freed.
//!
//! Whoever wants that has the lock to write, so nobody else has anything of it. The home forgets it, and the switch; whoever
//! waits here is refused. Afterwards the region may be freed, and be locked anew by whoever gets it next.

use wire::{GlobalAddr, LockEnd, LockKind, LockPacket, LockRules, Refusal, Status};

use super::home::Keeper;
use super::record::{Again, Freeing, Lock, Waiter};
use super::store::LockStore;
use super::{Context, LockDrop, LockEffect, LockNode, Ticket, context};
use crate::store::Moment;

impl<R: LockRules> LockNode<R> {
    /// A thread that is in the lock to write wants it to be no more. It is out when [`LockEffect::Freed`] follows.
    ///
    /// # Panics
    /// If this node does not have the lock to write.
    pub fn on_free<S: LockStore>(
        &mut self,
        at: Moment,
        ticket: Ticket,
        lock: GlobalAddr,
        store: &mut S,
        out: &mut alloc::vec::Vec<LockEffect>,
    ) {
        let mut cx: Context<'_, S, R> = context(&self.config, &mut self.counters, at, store, out);
        let it = self
            .locks
            .get_mut(&lock)
            .filter(|it| it.reign.as_ref().is_some_and(super::record::Reign::is_complete));
        let it = it.expect("whoever frees a lock has it to write");
        // Whoever comes from now on is reported, and refused at the end.
        let _ = cx.store.close(lock);
        it.freeing = Some(Freeing { ticket, again: Again::first(&cx) });
        if it.report.is_none() {
            it.send_free(&mut cx);
        }
        let after = cx.after();
        self.after(at, lock, after, store, out);
    }

    /// At its home: the lock is forgotten, here and in the switch.
    pub(super) fn on_free_packet<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut alloc::vec::Vec<LockEffect>,
    ) {
        if self.rebuilding.is_some() {
            return self.counters.drop(LockDrop::NotCurrent);
        }
        let lock = packet.lock;
        let mut cx: Context<'_, S, R> = context(&self.config, &mut self.counters, at, store, out);
        let from = LockEnd::Home(cx.config.id);
        let before = |home: &&mut super::home::HomeLock| packet.tenure >= home.tenure;
        match self.homes.get_mut(&lock).filter(before).map(|home| &mut home.keeper) {
            Some(keeper @ Keeper::Asked(..)) => {
                // The switch has lent it, so it keeps the entry, whatever became of its answer.
                let asked = core::mem::replace(keeper, Keeper::Ending(packet.node));
                cx.send(packet.reply(LockKind::Remove, from, LockEnd::Switch), None);
                let Keeper::Asked(_, waiting) = asked else { unreachable!("it was matched") };
                self.answer_reports(at, lock, store, out);
                for request in waiting {
                    self.refuse(at, &request, Refusal::Unallocated, store, out);
                }
                return;
            }
            Some(keeper @ (Keeper::Switch | Keeper::Ending(_))) => {
                *keeper = Keeper::Ending(packet.node);
                return cx.send(packet.reply(LockKind::Remove, from, LockEnd::Switch), None);
            }
            Some(Keeper::Here | Keeper::Nobody) => self.directory.remove(lock),
            // It is gone already; the lock that may be there by now is another one.
            None => {
                return cx.send(packet.reply(LockKind::Freed, from, LockEnd::Agent(packet.node)), None);
            }
        }
        self.homes.remove(&lock);
        self.ended.insert(lock, packet.tenure.next());
        cx.send(packet.reply(LockKind::Freed, from, LockEnd::Agent(packet.node)), None);
    }

    /// The switch has forgotten it.
    pub(super) fn on_removed<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut alloc::vec::Vec<LockEffect>,
    ) {
        let mut cx: Context<'_, S, R> = context(&self.config, &mut self.counters, at, store, out);
        let Some(Keeper::Ending(node)) = self.homes.get(&packet.lock).map(|home| &home.keeper) else {
            return cx.counters.drop(LockDrop::Late);
        };
        let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(*node));
        self.homes.remove(&packet.lock);
        self.ended.insert(packet.lock, packet.tenure.next());
        cx.send(packet.reply(LockKind::Freed, from, to), None);
    }
}

impl Lock {
    pub(super) fn send_free<S, R>(&self, cx: &mut Context<'_, S, R>) {
        let tenure = self.reign.as_ref().expect("whoever frees a lock reigns").tenure;
        let free = LockPacket { tenure, ..self.packet(cx, LockKind::Free) };
        cx.send(LockPacket { to: LockEnd::Home(self.at.home()), ..free }, None);
    }

    /// The lock is no more.
    pub(super) fn on_freed<S: LockStore, R: LockRules>(&mut self, cx: &mut Context<'_, S, R>) {
        let Some(Freeing { ticket, .. }) = self.freeing.take() else {
            return cx.counters.drop(LockDrop::Late);
        };
        let why = Refusal::Unallocated;
        let reign = self.reign.take().expect("whoever frees a lock reigns");
        // Whoever was sent here, and comes only now, has to ask anew.
        self.last = Some((reign.tenure, reign.known));
        for waiter in reign.queue {
            match waiter {
                Waiter::Local(thread) => cx.out.push(LockEffect::Failed(thread.ticket, why)),
                Waiter::Remote(node, _) => {
                    let refused =
                        LockPacket { status: Status::Refused(why), ..self.packet(cx, LockKind::Refused) };
                    cx.send(LockPacket { to: LockEnd::Agent(node), ..refused }, None);
                }
            }
        }
        cx.store.release(self.at);
        self.has_room = false;
        cx.freed_room = true;
        cx.out.push(LockEffect::Freed(ticket));
    }
}
