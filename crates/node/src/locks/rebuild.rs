//! A home has heard from all nodes: who has a lock, and where its data are.
//!
//! What must always hold: the holder goes on; else the latest data that anybody alive has count; and if a dead node may have
//! written later ones, the lock is lost.

use alloc::vec::Vec;

use wire::{Copyset, GlobalAddr, LockPacket, Mode, NodeId, Rule, Rules, Term};

use super::home::{Entry, HomeLock, Keeper};
use super::recovery::{Decision, Rebuilding};
use super::store::LockStore;
use super::{LockEffect, LockNode};
use crate::store::{DataRef, Moment};

/// What one node has said of the lock, and the data that came with that.
type Report<'a> = (NodeId, &'a LockPacket, Option<DataRef>);

fn holds(packet: &LockPacket) -> bool {
    packet.mode == Mode::Write
}

fn is_copy(packet: &LockPacket) -> bool {
    packet.mode == Mode::Read && packet.has_copy
}

fn has_moved(packet: &LockPacket) -> bool {
    packet.mode == Mode::Read && !packet.has_copy && packet.once
}

/// What all of them say together.
struct Evidence {
    holder: Option<(NodeId, Term)>,
    /// The latest term of which somebody has a copy, its data if they came, and who has a copy.
    copies: Option<(Term, Option<DataRef>, Copyset)>,
    /// The last move that this home has not heard the end of.
    last_move: Option<(Term, Option<DataRef>)>,
    /// It has not arrived, as far as anybody alive knows.
    is_on_its_way: bool,
    /// The last term of somebody who does not hold the lock any more.
    past: Term,
    latest: Option<Term>,
}

impl Evidence {
    fn of(reports: &[Report<'_>], home: &HomeLock, gone: Copyset) -> Self {
        let of = |kind: fn(&LockPacket) -> bool| reports.iter().filter(move |(_, packet, _)| kind(packet));
        let holder = of(holds).max_by_key(|(_, packet, _)| packet.term);
        let copies = of(is_copy).map(|(_, packet, _)| packet.term).max().map(|term| {
            let data = of(is_copy).find_map(|(_, packet, data)| data.filter(|_| packet.term == term));
            (term, data, of(is_copy).map(|(node, ..)| *node).collect())
        });
        // What moved before that is old.
        let past = of(|packet| !holds(packet) && !is_copy(packet) && !has_moved(packet));
        let past = past.map(|(_, packet, _)| packet.term).max().unwrap_or(Term::NONE);
        // What moved before the term that this home knows of is old, too.
        let known = home.lent.map_or(home.term, |(_, term)| term.max(home.term));
        let last_move = of(has_moved).max_by_key(|(_, packet, _)| packet.term);
        let last_move = last_move.filter(|(_, packet, _)| packet.term > known);
        Self {
            holder: holder.map(|(node, packet, _)| (*node, packet.term)),
            copies,
            is_on_its_way: last_move.is_some_and(|(_, packet, _)| {
                packet.term > past && !packet.next.is_some_and(|next| gone.contains(next))
            }),
            last_move: last_move.map(|(_, packet, data)| (packet.term, *data)),
            past,
            latest: reports.iter().map(|(_, packet, _)| packet.term).max(),
        }
    }
}

impl HomeLock {
    /// Takes what was found out: the entry of the lock, and whether its data are lost.
    fn settle<R: Rules, S: LockStore>(
        &mut self,
        rules: R,
        lock: GlobalAddr,
        (found, gone): (&Evidence, Copyset),
        store: &mut S,
    ) -> (Entry, bool) {
        let entry = |term| Entry { term, ..Entry::default() };
        if let Some((node, term)) = found.holder {
            self.lent = Some((node, term));
            return (Entry { holder: Some(node), ..entry(term) }, false);
        }
        if let Some((term, data, sharers)) = found.copies {
            let is_later = term > self.term && self.len > 0;
            if let Some(data) = data.filter(|_| is_later) {
                store.write_home(lock, self.len, data);
                self.lost = false;
            }
            self.term = self.term.max(term);
            self.lent = None;
            // Nobody honest has a copy that its home does not have, and reports it without its data.
            return (Entry { sharers, ..entry(self.term) }, is_later && data.is_none());
        }
        if let Some((term, data)) = found.last_move.filter(|_| found.is_on_its_way) {
            if let Some(data) = data {
                store.write_home(lock, self.len, data);
            }
            self.comes_back(term);
            return (entry(self.term), false);
        }
        let mut lost = false;
        if let Some((to, term)) = self.lent.take() {
            // It never came there, if who it was lent to is alive and has not held it.
            let arrived = gone.contains(to) || found.past >= term || found.last_move.is_some();
            lost = arrived && self.len > 0 && rules.holds(Rule::DeadHoldersLose);
            self.lost &= rules.holds(Rule::TakenLossesStay);
            // From hand to hand it may have gone on since: the next lock of this name must begin behind all of that.
            self.term = term.max(found.latest.unwrap_or(term));
        } else {
            self.term = self.term.max(found.past);
        }
        (entry(self.term), lost)
    }
}

impl<R: Rules> LockNode<R> {
    /// Finds out who has a lock, and where its data are.
    pub(super) fn rebuild<S: LockStore>(
        &mut self,
        at: Moment,
        lock: GlobalAddr,
        heard: &Rebuilding,
        store: &mut S,
        out: &mut Vec<LockEffect>,
    ) {
        let range = (lock, NodeId(0))..=(lock, NodeId(u16::MAX));
        let reports = heard.reports.range(range).map(|((_, node), (packet, data))| (*node, packet, *data));
        let reports: Vec<Report<'_>> = reports.collect();
        if self.homes.get(&lock).is_some_and(|home| home.freed) && self.rules.holds(Rule::FreedLocksEnd) {
            let latest = reports.iter().map(|(_, packet, _)| packet.term).max();
            self.end_freed(lock, latest.unwrap_or(Term::NONE));
        }
        let ends = |(node, packet, _): &Report<'_>| {
            let decision = Decision { len: packet.len, term: packet.term, stays: false, placed: false };
            ((lock, *node), decision)
        };
        let Some(home) = self.homes.get_mut(&lock) else {
            // It was freed, and not everybody has heard.
            self.decided.extend(reports.iter().map(ends));
            return self.answer_reports(at, lock, store, out);
        };
        // What there is of a lock that was freed, and whose end its holder has not heard of, is not of this one.
        let since = home.since;
        let (reports, past_ones): (Vec<_>, Vec<_>) =
            reports.into_iter().partition(|(_, packet, _)| packet.term >= since);
        let found = Evidence::of(&reports, home, heard.gone);
        let (entry, lost) = home.settle(self.rules, lock, (&found, heard.gone), store);
        self.counters.lost += u64::from(lost && !home.lost);
        home.lost |= lost;
        let (len, is_lost) = (home.len, home.is_lost());
        self.decided.extend(past_ones.iter().map(ends));
        self.decided.extend(reports.iter().map(|(node, packet, _)| {
            let stays = match entry.holder {
                Some(holder) => holds(packet) && holder == *node,
                None => is_copy(packet),
            };
            ((lock, *node), Decision { len, term: entry.term, stays, placed: false })
        }));
        if is_lost {
            // No directory knows it, so that whoever asks comes here, and is refused.
            return self.answer_reports(at, lock, store, out);
        }
        if reports.is_empty() && past_ones.is_empty() {
            return;
        }
        self.place(at, lock, entry, store, out);
        if self.homes[&lock].keeper == Keeper::Here {
            self.answer_reports(at, lock, store, out);
        }
    }
}
