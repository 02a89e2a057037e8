//! A node's locks as a value, for checkers that explore all states of a small rack.
//!
//! A [`State`] holds what decides about the future, and nothing else: no times, no counters, and no lock of which this node
//! knows nothing. Two nodes with equal states behave alike from there on. As in [`crate::coherence::canonical`], everything that is
//! armed in a saved state is due in the far future, and [`LockNode::fire`] lets one [`Timer`] go off.

use alloc::vec::Vec;

use wire::{Copyset, GlobalAddr, Incarnation, NodeId, Rules, SwitchEpoch, Term};

use super::home::HomeLock;
use super::record::{Again, Holding, Lock};
use super::recovery::{Decision, LastReport, Rebuilding};
use super::store::LockStore;
use super::{LockEffect, LockNode};
use crate::coherence::canonical::{FAR, NOW};
use crate::store::{DataRef, Moment};
use wire::Nanos;

/// What decides about the future of a node's locks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    epoch: SwitchEpoch,
    live: Copyset,
    incarnations: Vec<Incarnation>,
    locks: Vec<Lock>,
    roomless: Vec<GlobalAddr>,
    homes: Vec<(GlobalAddr, HomeLock)>,
    directory: switch::locks::DirectoryState,
    ended: Term,
    installs: u32,
    last_reports: Vec<(NodeId, LastReport)>,
    freeing_at: Copyset,
    rebuilding: Option<Rebuilding>,
    decided: Vec<((GlobalAddr, NodeId), Decision)>,
}

/// Something that is sent again when its time has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The request for a lock.
    Request(GlobalAddr),
    /// The question whether the copies of readers are gone.
    Readers(GlobalAddr),
    /// A MOVE, or what of it was not received.
    Move(GlobalAddr),
    /// The request for a lock's end.
    Free(GlobalAddr),
    /// The report about a lock.
    Report(GlobalAddr),
    /// That a home has all reports.
    LastReport(NodeId),
}

impl<R: Rules> LockNode<R> {
    /// The state of the node's locks.
    pub fn save(&self) -> State {
        let known = self.locks.values().map(|lock| {
            let mut lock = lock.clone();
            lock.each_again(|again| again.forget_time());
            lock.scheduled = lock.due();
            lock
        });
        let last_reports = self.last_reports.iter().map(|(home, last)| {
            let mut last = *last;
            last.again.forget_time();
            (*home, last)
        });
        State {
            epoch: self.config.epoch,
            live: self.live,
            incarnations: self.incarnations.clone(),
            locks: known.filter(|lock| *lock != Lock::new(lock.at, lock.len)).collect(),
            roomless: self.roomless.iter().copied().collect(),
            homes: self.homes.iter().map(|(lock, home)| (*lock, home.clone())).collect(),
            directory: self.directory.save(),
            ended: self.ended,
            installs: self.installs,
            last_reports: last_reports.collect(),
            freeing_at: self.freeing_at,
            rebuilding: self.rebuilding.clone(),
            decided: self.decided.iter().map(|(key, decision)| (*key, *decision)).collect(),
        }
    }

    /// Takes on the state of a node with the same configuration.
    pub fn load(&mut self, state: &State) {
        self.config.epoch = state.epoch;
        self.live = state.live;
        self.incarnations.clone_from(&state.incarnations);
        self.locks = state.locks.iter().map(|lock| (lock.at, lock.clone())).collect();
        let due = state.locks.iter().filter(|lock| lock.scheduled != Nanos::MAX);
        self.due = due.map(|lock| (lock.scheduled, lock.at)).collect();
        self.roomless = state.roomless.iter().copied().collect();
        self.homes = state.homes.iter().cloned().collect();
        self.directory.restart(state.epoch);
        self.directory.load(&state.directory);
        self.ended = state.ended;
        self.installs = state.installs;
        self.last_reports = state.last_reports.iter().copied().collect();
        self.freeing_at = state.freeing_at;
        self.rebuilding.clone_from(&state.rebuilding);
        self.decided = state.decided.iter().copied().collect();
    }

    /// Lets one timer of a loaded state go off.
    pub fn fire<S: LockStore>(&mut self, timer: Timer, store: &mut S, out: &mut Vec<LockEffect>) {
        self.make_due(timer);
        self.on_deadline(Moment { now: NOW, random: 0 }, store, out);
    }

    /// Makes one timer of a loaded state due.
    pub fn make_due(&mut self, timer: Timer) {
        let now = |again: &mut Again| again.at = Nanos::ZERO;
        match timer {
            Timer::LastReport(home) => {
                self.last_reports.get_mut(&home).map(|last| &mut last.again).map(now);
            }
            Timer::Request(at)
            | Timer::Readers(at)
            | Timer::Move(at)
            | Timer::Free(at)
            | Timer::Report(at) => {
                if let Some(lock) = self.locks.get_mut(&at) {
                    lock.again_of(timer).map(now);
                    self.schedule(at);
                }
            }
        }
    }
}

impl Again {
    fn forget_time(&mut self) {
        self.repeats = 0;
        if self.at != Nanos::MAX {
            self.at = FAR;
        }
    }
}

impl Lock {
    fn each_again(&mut self, mut what: impl FnMut(&mut Again)) {
        for timer in [Timer::Request, Timer::Readers, Timer::Move, Timer::Free, Timer::Report] {
            self.again_of(timer(self.at)).map(&mut what);
        }
    }

    fn again_of(&mut self, timer: Timer) -> Option<&mut Again> {
        match timer {
            Timer::Request(_) => self.request.as_mut().map(|request| &mut request.again),
            Timer::Readers(_) => self.holding.as_mut().map(|holding| &mut holding.again),
            Timer::Move(_) => self.moving.as_mut().map(|moving| &mut moving.again),
            Timer::Free(_) => self.freeing.as_mut().map(|freeing| &mut freeing.again),
            Timer::Report(_) => self.report.as_mut().map(|report| &mut report.again),
            Timer::LastReport(_) => None,
        }
    }

    fn is_armed(&self, timer: Timer) -> bool {
        let again = match timer {
            Timer::Request(_) => self.request.map(|request| request.again),
            Timer::Readers(_) => self
                .holding
                .as_ref()
                .filter(|holding| !holding.awaiting.is_empty())
                .map(|holding| holding.again),
            Timer::Move(_) => self.moving.map(|moving| moving.again),
            Timer::Free(_) => self.freeing.filter(|_| self.report.is_none()).map(|freeing| freeing.again),
            Timer::Report(_) => self.report.map(|report| report.again),
            Timer::LastReport(_) => None,
        };
        again.is_some_and(|again| again.at != Nanos::MAX)
    }
}

impl State {
    /// The incarnation of the switch that the node knows of.
    pub const fn epoch(&self) -> SwitchEpoch {
        self.epoch
    }

    /// What is armed.
    pub fn timers(&self) -> Vec<Timer> {
        let mut timers = Vec::new();
        for lock in &self.locks {
            for timer in [Timer::Request, Timer::Readers, Timer::Move, Timer::Free, Timer::Report] {
                let timer = timer(lock.at);
                if lock.is_armed(timer) {
                    timers.push(timer);
                }
            }
        }
        let last = self.last_reports.iter().filter(|(_, last)| last.again.at != Nanos::MAX);
        timers.extend(last.map(|(home, _)| Timer::LastReport(*home)));
        timers
    }

    /// Nodes whose requests for a lock are kept here until something comes: a term's queue, the data, an entry's keeper.
    pub fn parked(&self, lock: GlobalAddr) -> Copyset {
        let early = self.locks.iter().filter(|it| it.at == lock).filter_map(|it| it.early);
        let queued = early.fold(Copyset::EMPTY, |all, early| all.union(early.queue.nodes()));
        // A verdict that waits for its data is followed: by this node, and then by its queue.
        let verdicts = self.locks.iter().filter(|it| it.at == lock).filter_map(|it| it.verdict);
        let queued = verdicts.fold(queued, |all, verdict| {
            verdict.to.node().into_iter().fold(all.union(verdict.queue.nodes()), Copyset::with)
        });
        let homes = self.homes.iter().filter(|(at, _)| *at == lock).flat_map(|(_, home)| home.parked());
        let parked = self.rebuilding.iter().flat_map(|rebuilding| &rebuilding.parked);
        let parked = parked.filter(|packet| packet.lock == lock);
        homes.chain(parked).fold(queued, |all, packet| all.with(packet.node))
    }

    /// The numbers of requests that decide about something: whose, for which lock. How many a node has asked is none of them.
    pub fn numbers(&self, me: NodeId, mut found: impl FnMut(NodeId, GlobalAddr, u32)) {
        for lock in &self.locks {
            let threads = lock.threads.iter().chain(lock.holding.iter().flat_map(Holding::threads));
            let asked = lock.request.map(|it| it.number).into_iter();
            asked.chain(threads.map(|thread| thread.after)).for_each(|number| found(me, lock.at, number));
        }
        let homes = self.homes.iter().flat_map(|(_, home)| home.parked());
        let parked = self.rebuilding.iter().flat_map(|rebuilding| &rebuilding.parked);
        homes.chain(parked).for_each(|packet| found(packet.node, packet.lock, packet.number));
    }

    /// Gives requests other numbers, in the same order.
    pub fn renumber(&mut self, me: NodeId, to: impl Fn(NodeId, GlobalAddr, u32) -> u32) {
        for lock in &mut self.locks {
            let at = lock.at;
            let change = |number: &mut u32| *number = to(me, at, *number);
            change(&mut lock.asked);
            lock.request.iter_mut().for_each(|it| change(&mut it.number));
            let in_queue = lock.holding.iter_mut().flat_map(Holding::threads_mut);
            lock.threads.iter_mut().chain(in_queue).for_each(|thread| change(&mut thread.after));
        }
        self.locks.retain(|lock| *lock != Lock::new(lock.at, lock.len));
        let homes = self.homes.iter_mut().flat_map(|(_, home)| home.parked_mut());
        let parked = self.rebuilding.iter_mut().flat_map(|rebuilding| &mut rebuilding.parked);
        for packet in homes.chain(parked) {
            packet.number = to(packet.node, packet.lock, packet.number);
        }
    }

    /// How many requests for each lock the node has numbered.
    pub fn asked(&self) -> impl Iterator<Item = (GlobalAddr, u32)> {
        self.locks.iter().map(|lock| (lock.at, lock.asked))
    }

    /// Replaces the names of a lock's contents.
    pub fn map_data(&mut self, lock: GlobalAddr, to: impl Fn(DataRef) -> DataRef) {
        let Some(rebuilding) = &mut self.rebuilding else { return };
        for (_, (_, data)) in rebuilding.reports.iter_mut().filter(|((about, _), _)| *about == lock) {
            *data = data.map(&to);
        }
    }
}
