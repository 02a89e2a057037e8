//! The home of the locks in a node's memory: their data, when nobody has them, and the directory of those that the switch
//! does not keep.

use alloc::vec::Vec;

use switch::locks::Effect;
use wire::{Copyset, GlobalAddr, LockEnd, LockKind, LockPacket, NodeId, Refusal, Rule, Rules, Status, Term};

use super::store::LockStore;
use super::{Context, LockDrop, LockEffect, LockMessage, LockNode, context};
use crate::store::Moment;

/// Who keeps a lock's entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Keeper {
    /// Nobody, until somebody asks.
    Nobody,
    /// The switch was asked to, and has not answered. These wait.
    Asked(Entry, Vec<LockPacket>),
    Switch,
    /// This home's directory.
    Here,
    /// The switch is asked to forget it, for the holder that has sent this. These wait: there may be a new lock of that name by
    /// then.
    Ending(LockPacket, Vec<LockPacket>),
}

/// What an entry is to begin with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct Entry {
    pub(super) term: Term,
    pub(super) holder: Option<NodeId>,
    pub(super) sharers: Copyset,
    /// Which call of the switch says so.
    pub(super) install: u32,
}

/// A lock in this node's memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct HomeLock {
    pub(super) len: u32,
    /// Where its terms began: what is of an earlier one is of another lock, which was here before.
    pub(super) since: Term,
    /// The data here are those of this term.
    pub(super) term: Term,
    /// They have been lent for writing, to this node in this term, and are not back.
    pub(super) lent: Option<(NodeId, Term)>,
    /// Whoever had them last is gone. If they are lent, then to a node that knows.
    pub(super) lost: bool,
    /// Its memory belongs to no allocation any more, or to another one.
    pub(super) freed: bool,
    pub(super) keeper: Keeper,
    /// What was asked for data that are still on their way back.
    pub(super) early: Vec<LockPacket>,
}

impl HomeLock {
    const fn new(len: u32, since: Term) -> Self {
        Self {
            len,
            since,
            term: since,
            lent: None,
            lost: false,
            freed: false,
            keeper: Keeper::Nobody,
            early: Vec::new(),
        }
    }

    /// The requests that wait here.
    pub(super) fn parked(&self) -> impl Iterator<Item = &LockPacket> {
        let waiting = match &self.keeper {
            Keeper::Asked(_, waiting) | Keeper::Ending(_, waiting) => waiting.as_slice(),
            _ => &[],
        };
        self.early.iter().chain(waiting)
    }

    /// The same, for whoever gives requests other numbers.
    pub(super) fn parked_mut(&mut self) -> impl Iterator<Item = &mut LockPacket> {
        let waiting = match &mut self.keeper {
            Keeper::Asked(_, waiting) | Keeper::Ending(_, waiting) => waiting.as_mut_slice(),
            _ => &mut [],
        };
        self.early.iter_mut().chain(waiting)
    }

    /// Keeps a request until the data that it is about are back.
    fn keep(&mut self, packet: &LockPacket) {
        self.early.retain(|kept| kept.node != packet.node);
        self.early.push(*packet);
    }
}

impl<R: Rules> LockNode<R> {
    pub(super) fn on_home_packet<S: LockStore>(
        &mut self,
        at: Moment,
        message: &LockMessage,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        match message.packet.kind {
            LockKind::Acquire | LockKind::Move => self.on_directory_packet(at, message, store, out),
            LockKind::Serve => self.on_serve(at, &message.packet, store, out),
            LockKind::Lend => self.on_lend(at, &message.packet, store, out),
            LockKind::WriteBack => self.on_write_back(at, message, store, out),
            LockKind::Installed => self.on_installed(at, &message.packet, store, out),
            LockKind::Free => self.on_free_packet(at, &message.packet, store, out),
            LockKind::Reclaim => self.on_reclaim_packet(at, &message.packet, store, out),
            LockKind::Removed => self.on_removed(at, &message.packet, store, out),
            LockKind::Report => self.on_report(at, message, store, out),
            LockKind::LastReport => self.on_last_report(at, &message.packet, store, out),
            _ => self.counters.drop(LockDrop::Nonsense),
        }
    }

    /// The switch does not have the entry: this home's directory does, or the lock is new.
    pub(super) fn on_directory_packet<S: LockStore>(
        &mut self,
        at: Moment,
        message: &LockMessage,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let packet = &message.packet;
        let (lock, len) = (packet.lock, packet.len);
        if let Some(rebuilding) = &mut self.rebuilding
            && self.rules.holds(Rule::LockHomeAwaitsReports)
        {
            // Nobody moves a lock before he has heard from its home.
            if packet.kind == LockKind::Acquire && !rebuilding.parked.contains(packet) {
                rebuilding.parked.push(*packet);
            }
            return;
        }
        if !self.homes.contains_key(&lock) {
            if packet.kind == LockKind::Move {
                // Of a lock that is no more; so it has gone on from there, and its sender does not know.
                self.counters.drop(LockDrop::Late);
                if packet.term < self.ended {
                    let mut cx: Context<'_, S, R> =
                        context(self.rules, &self.config, &mut self.counters, at, store, out);
                    let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(packet.node));
                    cx.send(packet.reply(LockKind::Approved, from, to), None);
                }
                return;
            }
            if let Err(why) = store.may_lock(lock, len) {
                return self.refuse(at, packet, why, store, out);
            }
            if packet.term < self.ended && self.rules.holds(Rule::LateRequestsMakeNoLock) {
                // It may be a late one, for a lock that is no more: whoever wants one now says so again.
                let mut cx: Context<'_, S, R> =
                    context(self.rules, &self.config, &mut self.counters, at, store, out);
                let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(packet.node));
                let status = Status::Refused(Refusal::Outdated);
                let refused = packet.reply(LockKind::Refused, from, to);
                return cx.send(LockPacket { status, term: self.ended, number: 0, ..refused }, None);
            }
            self.homes.insert(lock, HomeLock::new(len, self.ended));
        }
        let home = self.homes.get_mut(&lock).expect("it is there by now");
        if home.is_lost() {
            return self.refuse(at, packet, Refusal::Lost, store, out);
        }
        if home.len != len {
            return self.refuse(at, packet, Refusal::WrongLength, store, out);
        }
        if home.keeper == Keeper::Nobody {
            let entry = Entry { term: home.term, ..Entry::default() };
            self.place(at, lock, entry, store, out);
        }
        let home = self.homes.get_mut(&lock).expect("it is there");
        match &mut home.keeper {
            Keeper::Nobody => unreachable!("it has just been placed"),
            Keeper::Asked(entry, waiting) => {
                if !waiting.contains(packet) {
                    waiting.push(*packet);
                } else {
                    // What was asked of the switch, or its answer, may have been lost.
                    let entry = *entry;
                    self.ask_switch(at, (lock, len), entry, store, out);
                }
            }
            Keeper::Switch => {
                // It passed the switch before the entry was there.
                let mut cx: Context<'_, S, R> =
                    context(self.rules, &self.config, &mut self.counters, at, store, out);
                cx.send(LockPacket { to: LockEnd::Switch, ..*packet }, None);
            }
            Keeper::Here => self.run_directory(at, packet, store, out),
            Keeper::Ending(_, waiting) => {
                if packet.kind == LockKind::Acquire && !waiting.contains(packet) {
                    waiting.push(*packet);
                }
            }
        }
    }

    /// Finds a keeper for an entry.
    pub(super) fn place<S: LockStore>(
        &mut self,
        at: Moment,
        lock: GlobalAddr,
        entry: Entry,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let home = self.homes.get_mut(&lock).expect("what is placed is a lock of this home");
        if self.config.in_switch {
            self.installs = self.installs.wrapping_add(1);
            let entry = Entry { install: self.installs, ..entry };
            home.keeper = Keeper::Asked(entry, Vec::new());
            let len = home.len;
            self.ask_switch(at, (lock, len), entry, store, out);
        } else {
            home.keeper = Keeper::Here;
            self.directory.insert(lock, entry.term, entry.holder, entry.sharers);
        }
    }

    pub(super) fn ask_switch<S: LockStore>(
        &mut self,
        at: Moment,
        (lock, len): (GlobalAddr, u32),
        entry: Entry,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let install = LockPacket {
            from: LockEnd::Home(cx.config.id),
            term: entry.term,
            next: entry.holder,
            nodes: entry.sharers,
            number: entry.install,
            ..LockPacket::new(LockKind::Install, lock, len, cx.config.id)
        };
        cx.send(install, None);
    }

    /// Puts a packet through this home's directory, with its second pass right behind the first.
    fn run_directory<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let mut effects = Vec::new();
        self.directory.on_packet(packet, &mut effects);
        while let Some(again) = effects.iter().position(|effect| matches!(effect, Effect::Resubmit(_))) {
            let Effect::Resubmit(again) = effects.remove(again) else { unreachable!("it is one") };
            self.directory.on_resubmit(&again, &mut effects);
        }
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        for effect in effects {
            let Effect::Send(packet) = effect else { unreachable!("all resubmissions are done") };
            cx.send(packet, None);
        }
    }

    pub(super) fn refuse<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        why: Refusal,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        if packet.kind == LockKind::Move {
            // Whoever has moved a lock has asked for nothing.
            return self.counters.drop(LockDrop::Late);
        }
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(packet.node));
        cx.send(
            LockPacket { status: Status::Refused(why), ..packet.reply(LockKind::Refused, from, to) },
            None,
        );
    }

    /// The switch keeps the entry, or has no capacity.
    fn on_installed<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let lock = packet.lock;
        let kept = packet.status.is_granted();
        let keeper = self.homes.get_mut(&lock).map(|home| &mut home.keeper);
        let is_asked = |keeper: &&mut Keeper| matches!(keeper, Keeper::Asked(entry, _) if entry.install == packet.number);
        let Some(keeper) = keeper.filter(is_asked) else {
            return self.counters.drop(LockDrop::Late);
        };
        let next = if kept { Keeper::Switch } else { Keeper::Here };
        let Keeper::Asked(entry, waiting) = core::mem::replace(keeper, next) else {
            unreachable!("it was matched")
        };
        if !kept {
            self.directory.insert(lock, entry.term, entry.holder, entry.sharers);
        }
        self.answer_reports(at, lock, store, out);
        self.lend_what_was_lost(at, lock, store, out);
        for packet in waiting {
            if packet.kind == LockKind::Free {
                self.on_free_packet(at, &packet, store, out);
            } else if kept {
                let mut cx: Context<'_, S, R> =
                    context(self.rules, &self.config, &mut self.counters, at, store, out);
                cx.send(LockPacket { to: LockEnd::Switch, ..packet }, None);
            } else {
                self.on_directory_packet(at, &LockMessage { packet, data: None }, store, out);
            }
        }
    }

    /// A node may read: it gets the data, if they are here.
    fn on_serve<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let lock = packet.lock;
        let home = self.homes.get_mut(&lock).filter(|home| home.len == packet.len);
        let is_ended = home.is_none() && packet.term < self.ended;
        if home.is_none() && !is_ended {
            return self.counters.drop(LockDrop::Nonsense);
        }
        if let Some(home) =
            home.filter(|home| home.term < packet.term && self.rules.holds(Rule::HomeIsCurrent))
        {
            if self.rules.holds(Rule::HomeKeepsEarly) {
                home.keep(packet);
            }
            return self.counters.drop(LockDrop::NotCurrent);
        }
        let is_later = self.homes.get(&lock).is_some_and(|home| home.term > packet.term);
        if is_ended || is_later && self.rules.holds(Rule::HomeIsCurrent) {
            // Somebody has written since, or ended the lock, and whoever was to read may still wait.
            self.counters.drop(LockDrop::NotCurrent);
            let mut cx: Context<'_, S, R> =
                context(self.rules, &self.config, &mut self.counters, at, store, out);
            let from = LockEnd::Home(cx.config.id);
            let again = packet.reply(LockKind::Acquire, from, LockEnd::Switch);
            return cx.send(LockPacket { term: Term::NONE, ..again }, None);
        }
        let data = store.home_contents(lock, packet.len);
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(packet.node));
        cx.send(packet.reply(LockKind::Granted, from, to), Some(data));
    }

    /// A node may write: it gets the lock, and the data unless it has them.
    fn on_lend<S: LockStore>(
        &mut self,
        at: Moment,
        packet: &LockPacket,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let lock = packet.lock;
        let Some(home) = self.homes.get_mut(&lock).filter(|home| home.len == packet.len) else {
            return self.counters.drop(LockDrop::Nonsense);
        };
        if home.term.next() != packet.term && self.rules.holds(Rule::HomeIsCurrent) {
            if home.term.next() < packet.term && self.rules.holds(Rule::HomeKeepsEarly) {
                home.keep(packet);
            }
            return self.counters.drop(LockDrop::NotCurrent);
        }
        home.lent = Some((packet.node, packet.term));
        let data = (!packet.has_copy).then(|| store.home_contents(lock, packet.len));
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(packet.node));
        cx.send(packet.reply(LockKind::Lent, from, to), data);
    }

    /// A lock comes back with its data.
    fn on_write_back<S: LockStore>(
        &mut self,
        at: Moment,
        message: &LockMessage,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let packet = &message.packet;
        let known = self.homes.get_mut(&packet.lock).filter(|home| home.len == packet.len);
        let (Some(home), Some(data)) = (known, message.data) else {
            if packet.term >= self.ended {
                return self.counters.drop(LockDrop::Nonsense);
            }
            // Of a lock that is no more: whoever sends this has not heard that it came before.
            self.counters.drop(LockDrop::Late);
            let mut cx: Context<'_, S, R> =
                context(self.rules, &self.config, &mut self.counters, at, store, out);
            let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(packet.node));
            return cx.send(packet.reply(LockKind::Received, from, to), None);
        };
        if packet.term > home.term || !self.rules.holds(Rule::WriteBackIsNewer) {
            home.comes_back(packet.term);
            if !home.freed || !self.rules.holds(Rule::FreedMemoryIsNotWritten) {
                store.write_home(packet.lock, packet.len, data);
            }
        }
        let early = core::mem::take(&mut home.early);
        let mut cx: Context<'_, S, R> = context(self.rules, &self.config, &mut self.counters, at, store, out);
        let (from, to) = (LockEnd::Home(cx.config.id), LockEnd::Agent(packet.node));
        cx.send(packet.reply(LockKind::Received, from, to), None);
        for packet in early {
            match packet.kind {
                LockKind::Serve => self.on_serve(at, &packet, store, out),
                _ => self.on_lend(at, &packet, store, out),
            }
        }
    }

    /// Whether the data of a lock are here, and of which term: for checkers and tools.
    pub fn home_of(&self, lock: GlobalAddr) -> Option<(Term, bool)> {
        self.homes.get(&lock).map(|home| (home.term, home.lent.is_some()))
    }
}
