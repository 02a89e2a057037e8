//! Data are lost only with a node that may have had them, and who is told so waited for a lock that was lost.
//!
//! What a home must decide from: it hears of a death, and then nobody alive reports the data. A node that is dead already, while
//! its home has not heard so, may still be lent a lock: so it is the epoch that the home hears of that counts, and not the
//! moment of the death. Whoever reclaims a lost lock gets it without data; until he leaves, it may be lost once more without a
//! death, if he never hears that he has it, or gives it up.

use std::collections::{BTreeMap, BTreeSet};

use wire::{Incarnation, Nanos, NodeId, Rules};

use crate::locks::{Locks, Thread, Want};
use crate::rack::Bench;

/// What was lost, and what may be.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Homes that have heard of a death, and have not decided what is lost by it.
    deciding: BTreeSet<NodeId>,
    /// Locks that were lost a step ago.
    lost: BTreeSet<(usize, Incarnation)>,
    /// Locks that were lost, and that nobody has released or ended since: when, and in which allocation.
    hollow: BTreeMap<(usize, Incarnation), (Nanos, u32)>,
    /// When a thread began to end its lock.
    ending: BTreeMap<usize, Nanos>,
    /// Locks without data that somebody was about to end who died: there still is one, and no allocation.
    orphans: BTreeSet<(usize, Incarnation)>,
    /// Threads that wait for a lock that was lost at some moment since they do.
    waited: BTreeSet<usize>,
}

impl Losses {
    /// A node hears of an epoch, in which somebody is gone of whom it knew.
    pub(crate) fn hears_of_death(&mut self, home: NodeId) {
        self.deciding.insert(home);
    }

    /// Who was about to end a lock has died.
    pub(crate) fn orphan(&mut self, lock: usize, incarnation: Incarnation) {
        self.orphans.insert((lock, incarnation));
    }

    pub(crate) fn is_orphan(&self, lock: usize, incarnation: Incarnation) -> bool {
        self.orphans.contains(&(lock, incarnation))
    }

    /// A thread begins to wait.
    pub(crate) fn begin(&mut self, thread: usize) {
        self.waited.remove(&thread);
    }

    /// True if a thread may be told that its lock is lost.
    pub(crate) fn may_be_told(&self, thread: usize) -> bool {
        self.waited.contains(&thread)
    }

    /// True if the lock is without data: whoever is inside has reclaimed it.
    pub(crate) fn is_hollow(&self, lock: usize, incarnation: Incarnation) -> bool {
        self.hollow.contains_key(&(lock, incarnation))
    }

    /// A thread begins to end its lock.
    pub(crate) fn ends(&mut self, thread: usize, now: Nanos) {
        self.ending.insert(thread, now);
    }

    /// It has ended. The thread hears that late, and the next lock of that name may be lost by then; it may even begin late, if it did
    /// not hear that it had given back the region: then the home has ended its lock, and what was lost is of a later allocation.
    pub(crate) fn ended(&mut self, thread: usize, want: Want) {
        let began = self.ending[&thread];
        // Its own one, and the time after it in which there is none.
        let is_of_it = |since, allocation| since <= began && allocation <= want.allocation + 1;
        self.hollow.retain(|at, lost| *at != (want.lock, want.incarnation) || !is_of_it(lost.0, lost.1));
    }

    /// Somebody leaves a lock, having written.
    pub(crate) fn released(&mut self, lock: usize, incarnation: Incarnation) {
        self.hollow.remove(&(lock, incarnation));
    }
}

pub(super) fn check<R: Rules, M: Copy>(locks: &mut Locks<R>, bench: &Bench<M>) -> Result<(), String> {
    let looks = locks.facts.any_lost() || !locks.losses.lost.is_empty();
    for (at, (lock, _)) in locks.locks.iter().enumerate().take_while(|_| looks) {
        let home = lock.home();
        if !locks.facts.nodes[home.index()][at].lost || !bench.control.works(home) {
            locks.losses.lost.remove(&(at, bench.control.known_incarnation(home, home)));
            continue;
        }
        let incarnation = bench.control.known_incarnation(home, home);
        if locks.losses.lost.insert((at, incarnation)) {
            if !locks.losses.deciding.contains(&home) && !locks.losses.is_hollow(at, incarnation) {
                return Err(format!("lock {at} is lost, and its home has heard of no death"));
            }
            let has_data = locks.nodes.iter().map(|(machine, _)| machine).find(|machine| {
                let ends =
                    machine.view(*lock).and_then(|view| view.holding).is_some_and(|holding| holding.moving);
                bench.control.works(machine.id())
                    && bench.control.known_incarnation(machine.id(), home) == incarnation
                    && machine.held(*lock).is_some()
                    && !ends
            });
            if let Some(machine) = has_data {
                return Err(format!("lock {at} is lost, and {} has its data", machine.id()));
            }
            let allocation = locks.allocations.now(at, incarnation);
            locks.losses.hollow.insert((at, incarnation), (bench.now, allocation));
        }
        for (thread, doing) in locks.threads.iter().enumerate() {
            if matches!(doing, Thread::Waiting(want) if (want.lock, want.incarnation) == (at, incarnation)) {
                locks.losses.waited.insert(thread);
            }
        }
    }
    let nodes = &locks.nodes;
    locks.losses.deciding.retain(|home| nodes[home.index()].0.is_recovering());
    Ok(())
}
