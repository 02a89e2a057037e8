//! A new epoch: the switch was restarted, or a node died or came back.
//!
//! Packets of another epoch are dropped everywhere, so whatever was in flight is cut short. Then:
//!
//! 1. *Agents.* Who holds a lock with everything it needs goes on holding: the thread inside notices nothing, and the next one
//!    waits until the home has answered. (Whoever is inside to write may give the memory back, and may hear that he could
//!    not: then it may be gone all the same, and somebody else's by now.) Who was about to hold it keeps what it got as a
//!    copy. Copies stay, also those that were to end. Of a lock that was on its way the data are kept. All of this is
//!    reported to the lock's home; so is that a node has held it and moved the lock on: whoever had it then may be dead.
//! 2. *Homes.* A home decides nothing until every live node has reported. Then it knows for each of its locks who holds it or
//!    who has copies, and where the data of the last release are: in a copy, on their way, or here; or they are
//!    *lost*. Entries go to the switch again, and reports are answered.
//! 3. Threads that wait ask again, in the terms that follow.
//!
//! # When data are lost
//! When nobody alive holds the lock or has a copy, and a dead node may have written: the lock was lent or moved to it (or to
//! somebody who says that he has moved it on) and did not come back. What a dead node wrote and nobody else has seen
//! cannot be told from what it did not write, so that counts as lost, too; stale data are never served.

use alloc::vec::Vec;

use sorted::Map;
use wire::{
    Copyset, GlobalAddr, LockEnd, LockKind, LockPacket, Mode, NodeId, Refusal, Rule, Rules, Status, Term,
};

use super::home::{HomeLock, Keeper};
use super::record::{Again, Copy, Cut, Lock, LockReport, Waiter};
use super::store::LockStore;
use super::{Context, LockDrop, LockEffect, LockMessage, LockNode, context};
use crate::coherence::recovery::View;
use crate::store::{DataRef, Moment};

/// That there are no more reports, said to a home until it answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct LastReport {
    packet: LockPacket,
    pub(super) again: Again,
}

/// What a home hears until everybody has reported.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Rebuilding {
    /// What was reported, and the data that came with it.
    pub(super) reports: Map<(GlobalAddr, NodeId), (LockPacket, Option<DataRef>)>,
    /// How many reports each node has, once it has said so.
    counts: Map<NodeId, u64>,
    /// Nodes that are not in the incarnation that they were in when this home knew its locks last.
    pub(super) gone: Copyset,
    /// Requests that wait.
    pub(super) parked: Vec<LockPacket>,
}

/// What a home has answered to a report.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Decision {
    pub(super) len: u32,
    pub(super) term: Term,
    /// What was reported stays.
    pub(super) stays: bool,
    /// The entry has a keeper, so the answer may go out.
    pub(super) placed: bool,
}

impl<R: Rules> LockNode<R> {
    /// A new epoch begins, with these nodes. A node that has heard of the epoch, or of a later one, does nothing.
    ///
    /// On a transport that loses nothing, nothing must be delivered before all nodes have been told.
    ///
    /// # Panics
    /// If the view is of a rack of another size.
    pub fn on_new_epoch<S: LockStore>(
        &mut self,
        at: Moment,
        view: &View,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        assert_eq!(view.incarnations.len(), self.config.nodes, "{view:?}");
        if view.epoch <= self.config.epoch {
            return;
        }
        self.config.epoch = view.epoch;
        let same = |(at, known): (usize, &wire::Incarnation)| view.incarnations[at] == Some(*known);
        let stayed: Vec<bool> = self.incarnations.iter().enumerate().map(same).collect();
        for (incarnation, new) in self.incarnations.iter_mut().zip(&view.incarnations) {
            *incarnation = new.unwrap_or(*incarnation);
        }
        self.live = view.live();
        // The home's side. Knowledge of an unfinished rebuild is in the reports, which come again.
        self.directory.restart(view.epoch);
        self.installs = 0;
        self.decided.clear();
        // Whoever went before this home could decide is still gone.
        let before = self.rebuilding.take().map_or(Copyset::EMPTY, |rebuilding| rebuilding.gone);
        let nodes = (0..self.config.nodes).map(|node| NodeId(u16::try_from(node).expect("at most 64 nodes")));
        let gone = nodes.filter(|node| !stayed[node.index()]).fold(before, Copyset::with);
        self.rebuilding = Some(Rebuilding { gone, ..Rebuilding::default() });
        for home in self.homes.values_mut() {
            home.keeper = Keeper::Nobody;
            home.early.clear();
        }
        // The agent's side.
        self.due.clear();
        self.roomless.clear();
        self.last_reports.clear();
        let mut counts: Map<NodeId, u64> = self.live.iter().map(|home| (home, 0)).collect();
        let locks: Vec<GlobalAddr> = self.locks.keys().copied().collect();
        for lock in locks {
            let mut cx: Context<'_, S, R> =
                context(self.rules, &self.config, &mut self.counters, at, store, out);
            let it = self.locks.get_mut(&lock).expect("it is known");
            it.scheduled = wire::Nanos::MAX;
            it.cut_short(&mut cx);
            if !stayed[lock.home().index()] {
                it.lose_home(&mut cx);
            } else if it.report(&mut cx) {
                *counts.get_mut(&lock.home()).expect("its home is up") += 1;
            }
        }
        for (home, count) in counts {
            let mut cx: Context<'_, S, R> =
                context(self.rules, &self.config, &mut self.counters, at, store, out);
            let packet = LockPacket {
                term: Term(count),
                to: LockEnd::Home(home),
                ..LockPacket::new(LockKind::LastReport, GlobalAddr::new(home, 0), 0, cx.config.id)
            };
            if self.rules.holds(Rule::FreesComeFirst) && self.freeing_at.contains(home) {
                self.last_reports.insert(home, LastReport { packet, again: Again::NEVER });
                continue;
            }
            self.last_reports.insert(home, LastReport { packet, again: Again::first(&cx) });
            cx.send(packet, None);
        }
        // Of what is like new, nothing has to be known.
        self.locks.retain(|lock, it| *it != Lock { asked: it.asked, ..Lock::new(*lock, it.len) });
        // Whoever waits asks again.
        let locks: Vec<GlobalAddr> = self.locks.keys().copied().collect();
        for lock in locks {
            let mut cx: Context<'_, S, R> =
                context(self.rules, &self.config, &mut self.counters, at, store, out);
            let it = self.locks.get_mut(&lock).expect("it is known");
            it.advance(&mut cx);
            // What was asked for and is not wanted any more.
            it.leave_room(&mut cx);
            let after = cx.after(it);
            self.after(at, lock, after, store, out);
        }
    }

    /// In the epoch that begins now, these homes must not hear yet that they have all reports: this node's allocator takes
    /// something back there, for somebody who may be dead. What he had is not lost, but free, and nobody may reclaim it.
    pub fn await_frees(&mut self, homes: Copyset) {
        self.freeing_at = homes;
    }

    /// The homes that wait for that.
    pub const fn awaited_frees(&self) -> Copyset {
        self.freeing_at
    }

    /// Nothing is taken back there any more.
    pub fn on_frees_done(&mut self, now: wire::Nanos, home: NodeId) {
        self.freeing_at = self.freeing_at.without(home);
        if let Some(last) = self.last_reports.get_mut(&home) {
            last.again.at = now;
        }
    }

    /// True until this node's homes have answered its reports, and its own home has heard from everybody.
    pub fn is_recovering(&self) -> bool {
        self.rebuilding.is_some()
            || !self.last_reports.is_empty()
            || self.locks.values().any(|lock| lock.report.is_some())
    }

    /// True if the data of this home's lock are lost.
    pub fn has_lost(&self, lock: GlobalAddr) -> bool {
        self.homes.get(&lock).is_some_and(HomeLock::is_lost)
    }

    pub(super) fn repeat_last_reports<S: LockStore>(
        &mut self,
        at: Moment,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        for last in self.last_reports.values_mut() {
            let mut cx: Context<'_, S, R> =
                context(self.rules, &self.config, &mut self.counters, at, store, out);
            if last.again.is_due(&mut cx) {
                cx.send(last.packet, None);
            }
        }
    }

    /// A node says what it has of a lock.
    pub(super) fn on_report<S: LockStore>(
        &mut self,
        at: Moment,
        message: &LockMessage,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let packet = message.packet;
        match &mut self.rebuilding {
            Some(rebuilding) => {
                rebuilding.reports.entry((packet.lock, packet.node)).or_insert((packet, message.data));
                self.rebuild_if_complete(at, store, out);
            }
            // It has been decided; the answer was lost, or will go out when the entry has a keeper.
            None => {
                if let Some((len, Keeper::Asked(entry, _))) =
                    self.homes.get(&packet.lock).map(|home| (home.len, &home.keeper))
                {
                    // What was asked of the switch, or its answer, may have been lost.
                    let entry = *entry;
                    self.ask_switch(at, (packet.lock, len), entry, store, out);
                }
                self.answer_report(at, packet.lock, packet.node, store, out);
            }
        }
    }

    /// A node says that it has no more to say.
    pub(super) fn on_last_report<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        match &mut self.rebuilding {
            Some(rebuilding) => {
                rebuilding.counts.insert(packet.node, packet.term.0);
                self.rebuild_if_complete(at, store, out);
            }
            None => self.answer_last(at, packet.node, store, out),
        }
    }

    fn answer_last<S: LockStore>(
        &mut self,
        at: Moment,
        node: NodeId,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let me = cx.config.id;
        let answer = LockPacket::new(LockKind::LastReport, GlobalAddr::new(me, 0), 0, node);
        cx.send(LockPacket { from: LockEnd::Home(me), to: LockEnd::Agent(node), ..answer }, None);
    }

    /// A home has heard from everybody.
    pub(super) fn on_last_reported(&mut self, packet: &LockPacket) {
        if self.last_reports.remove(&packet.lock.home()).is_none() {
            self.counters.drop(LockDrop::Late);
        }
    }

    fn rebuild_if_complete<S: LockStore>(&mut self, at: Moment, store: &mut S, out: &mut Vec<LockEffect>) {
        let live = self.live;
        let complete = |rebuilding: &mut Rebuilding| {
            live.iter().all(|node| {
                let have = rebuilding.reports.keys().filter(|(_, who)| *who == node).count() as u64;
                rebuilding.counts.get(&node).is_some_and(|count| *count == have)
            })
        };
        let Some(rebuilding) = self.rebuilding.take_if(complete) else { return };
        let mut locks: Vec<GlobalAddr> = rebuilding.reports.keys().map(|(lock, _)| *lock).collect();
        let unsure = |home: &HomeLock| home.lent.is_some() || home.freed;
        locks.extend(self.homes.iter().filter(|(_, home)| unsure(home)).map(|(lock, _)| *lock));
        locks.sort_unstable();
        locks.dedup();
        for lock in locks {
            self.rebuild(at, lock, &rebuilding, store, out);
        }
        for node in rebuilding.counts.keys() {
            self.answer_last(at, *node, store, out);
        }
        for packet in rebuilding.parked {
            match packet.kind {
                LockKind::Reclaim => self.on_reclaim_packet(at, &packet, store, out),
                _ => self.on_directory_packet(at, &LockMessage { packet, data: None }, store, out),
            }
        }
    }

    /// The entry has a keeper: whoever reported hears what became of it.
    pub(super) fn answer_reports<S: LockStore>(
        &mut self,
        at: Moment,
        lock: GlobalAddr,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let decided = self.decided.range((lock, NodeId(0))..=(lock, NodeId(u16::MAX)));
        let nodes: Vec<NodeId> = decided.map(|((_, node), _)| *node).collect();
        for node in &nodes {
            self.decided.get_mut(&(lock, *node)).expect("it was there").placed = true;
        }
        for node in nodes {
            self.answer_report(at, lock, node, store, out);
        }
    }

    fn answer_report<S: LockStore>(
        &mut self,
        at: Moment,
        lock: GlobalAddr,
        node: NodeId,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let decision = self.decided.get(&(lock, node)).copied();
        let Some(Decision { len, term, stays, placed: true }) = decision else { return };
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let status = if stays { Status::Granted } else { Status::Refused(Refusal::Outdated) };
        let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(node));
        let answer = LockPacket::new(LockKind::Reported, lock, len, node);
        cx.send(LockPacket { status, term, from, to, ..answer }, None);
    }
}

impl Lock {
    /// What was in flight ends; what was granted stays.
    fn cut_short<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        self.request = None;
        self.ending = None;
        self.early = None;
        self.arrived = None;
        self.verdict = None;
        self.wants_capacity = false;
        self.report = None;
        self.fence = Term::NONE;
        if let Some(moving) = self.moving.take() {
            // Approved or not, it is not this node that knows. But whoever reads here has a copy, and if this node was next,
            // nobody else has written.
            let (next, packet) = (moving.packet.term.next(), moving.packet);
            self.cut = Some(Cut { term: next, next: packet.next });
            let reads_on = packet.nodes.contains(cx.config.id) || packet.next == Some(cx.config.id);
            if self.holds() && reads_on {
                self.copy = Some(Copy { term: next, at_home: self.len == 0 });
            }
            self.end_holding();
            return;
        }
        let Some(holding) = &mut self.holding else { return };
        if holding.is_complete() {
            holding.known = Copyset::EMPTY;
            holding.queue.retain(|waiter| matches!(waiter, Waiter::Local(_)));
            self.fence = holding.term.next();
            return;
        }
        // The data have come, or were here before; nobody has written.
        let copy = if holding.by_hand {
            Some(Copy { term: holding.term, at_home: self.len == 0 })
        } else {
            (!holding.lacks_data).then_some(Copy { term: holding.term.before(), at_home: true })
        };
        self.end_holding();
        self.copy = copy;
        let _ = cx.store.close(self.at);
    }

    fn end_holding(&mut self) {
        let Some(holding) = self.holding.take() else { return };
        for waiter in holding.queue {
            if let Waiter::Local(thread) = waiter {
                self.threads.push_back(thread);
            }
        }
    }

    /// Tells the home what there is of the lock. False if there is nothing to tell.
    fn report<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) -> bool {
        // Without data, nothing can be lost, and nobody has to know who had it.
        let last = self.last.take().filter(|_| self.len > 0);
        let packet = LockPacket { to: LockEnd::Home(self.at.home()), ..self.packet(cx, LockKind::Report) };
        let (packet, with_data) = if let Some(holding) = &self.holding {
            (LockPacket { mode: Mode::Write, term: holding.term, ..packet }, false)
        } else if let Some(copy) = self.copy {
            (LockPacket { has_copy: true, term: copy.term, ..packet }, !copy.at_home)
        } else if let Some(Cut { term, next }) = self.cut.filter(|_| cx.rules.holds(Rule::MovesAreReported)) {
            (LockPacket { once: true, term, next, ..packet }, true)
        } else if let Some((term, _)) = last {
            self.last = last;
            (LockPacket { term, ..packet }, false)
        } else {
            return false;
        };
        if self.copy.is_some() || self.holding.is_some() {
            self.cut = None;
        }
        let with_data = with_data && self.len > 0;
        self.report = Some(LockReport { packet, with_data, again: Again::first(cx) });
        if self.is_indeterminate(cx.rules) {
            let _ = cx.store.close(self.at);
        }
        self.send_report(cx);
        true
    }

    /// True if this node held it when the epoch began, and the home has not said that the lock is still one.
    pub(super) fn is_indeterminate<R: Rules>(&self, rules: R) -> bool {
        rules.holds(Rule::HoldersAreConfirmed)
            && self.report.is_some_and(|report| report.packet.mode == Mode::Write)
    }

    pub(super) fn send_report<S: LockStore, R: Rules>(&self, cx: &mut Context<'_, S, R>) {
        let Some(report) = self.report else { return };
        let data = if report.with_data { self.data(cx) } else { None };
        cx.send(report.packet, data);
    }

    /// The home has heard from everybody.
    pub(super) fn on_reported<S: LockStore, R: Rules>(
        &mut self,
        cx: &mut Context<'_, S, R>,
        packet: &LockPacket,
    ) {
        let Some(LockReport { packet: said, .. }) = self.report.take() else {
            return cx.counters.drop(LockDrop::Late);
        };
        self.cut = None;
        // One that was granted since is another.
        if let Some(copy) = self.copy.as_mut().filter(|copy| copy.term <= packet.term) {
            *copy = Copy { term: packet.term, at_home: true };
        }
        if self.freeing.is_some() {
            // Asked for again, or done before the epoch; unless what was reported was before this term.
            if !packet.status.is_granted() && said.mode == Mode::Write {
                self.end(cx);
                return self.advance(cx);
            }
            self.send_free(cx);
        }
        let had = said.mode == Mode::Write || said.has_copy;
        if had && !packet.status.is_granted() {
            return self.lose_memory(cx, said.term);
        }
        self.leave_room(cx);
        self.advance(cx);
    }

    /// What this node had of the lock is of memory that was given back, and whoever did so has not ended the lock: it is no more.
    fn lose_memory<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>, term: Term) {
        if self.holding.as_ref().is_some_and(|holding| holding.term == term) {
            self.end_holding();
        }
        if self.copy.is_some_and(|copy| copy.term <= term) {
            self.copy = None;
            self.ending = None;
        }
        self.last = None;
        if self.has_capacity && !self.holds() && self.copy.is_none() {
            let _ = cx.store.close(self.at);
        }
        self.leave_room(cx);
        self.advance(cx);
    }

    /// The lock's home is gone, and its memory with it.
    fn lose_home<S: LockStore, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        self.end(cx);
        self.end_holding();
        self.copy = None;
        self.cut = None;
        self.last = None;
        // The next one of this name begins anew.
        self.fence = Term::NONE;
        self.since = Term::NONE;
        self.next_len = None;
        for thread in self.threads.drain(..) {
            cx.out.push(LockEffect::Failed(thread.ticket, Refusal::NodeDown));
        }
        self.leave_room(cx);
    }
}
