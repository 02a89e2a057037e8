//! Looking into a node's locks from outside: for tests, tools and checkers.

use core::fmt;

use wire::{Copyset, GlobalAddr, NodeId, Rules, Term};

use super::LockNode;
use super::record::{Lock, Waiter};

/// What a node knows of a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockView {
    /// Nothing of an earlier term is taken any more.
    pub fence: Term,
    /// Its copy to read, and of which term that is.
    pub copy: Option<Term>,
    /// The copy's readers are waited for.
    pub ending: bool,
    /// It keeps the queue.
    pub holding: Option<HolderView>,
    /// The directory has been asked.
    pub asked: bool,
    /// Threads that wait here.
    pub threads: usize,
}

/// What the node that keeps a lock's queue knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HolderView {
    /// Its number.
    pub term: Term,
    /// Threads may write, but for a MOVE that is in flight.
    pub complete: bool,
    /// A MOVE has been sent, and it is not known whether it was approved; or the lock is to end, and it is not known whether it
    /// has.
    pub moving: bool,
    /// It was when the epoch began, and nobody is let in until the home has said that there is the lock.
    pub indeterminate: bool,
    /// Nodes that the directory has sent here.
    pub known: Copyset,
    /// Of those, nodes of whom the MOVE in flight does not know.
    pub late: Copyset,
    /// Nodes in the queue.
    pub queue: Copyset,
}

impl<R: Rules> LockNode<R> {
    /// What this node knows of a lock, if it has ever touched it.
    pub fn view(&self, lock: GlobalAddr) -> Option<LockView> {
        let it = self.locks.get(&lock)?;
        let node = |waiter: &Waiter| match waiter {
            Waiter::Remote(node, _) => Some(*node),
            Waiter::Local(_) => None,
        };
        Some(LockView {
            fence: it.fence,
            copy: it.copy.map(|copy| copy.term),
            ending: it.ending.is_some(),
            holding: it.holding.as_ref().map(|holding| HolderView {
                term: holding.term,
                complete: holding.is_complete(),
                moving: it.moving.is_some_and(|moving| !moving.approved) || it.freeing.is_some(),
                indeterminate: it.is_indeterminate(self.rules),
                known: holding.known,
                late: it
                    .moving
                    .map_or(holding.known, |moving| holding.known.without_all(moving.packet.waiting)),
                queue: holding.queue.iter().filter_map(node).collect::<Copyset>(),
            }),
            asked: it.request.is_some(),
            threads: it.waiting_threads(),
        })
    }

    /// This node's number.
    pub const fn id(&self) -> NodeId {
        self.config.id
    }

    /// The directory of the locks that the switch does not keep.
    pub const fn directory(&self) -> &switch::locks::Directory<R> {
        &self.directory
    }

    /// What the directory here says of a lock that the switch does not keep.
    pub fn entry(&self, lock: GlobalAddr) -> Option<switch::locks::EntryView> {
        self.directory.entry(lock)
    }
}

/// What it waits for, and what it has counted: of the locks it has touched, those with which something goes on.
impl<R: Rules> fmt::Debug for LockNode<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Where some find no room, those that have it, too.
        let fills = |it: &Lock| !self.roomless.is_empty() && it.has_capacity;
        let goes_on = |it: &Lock| it.due() != wire::Nanos::MAX || it.waiting_threads() > 0 || fills(it);
        let busy = self.locks.values().filter(|it| goes_on(it));
        f.debug_struct("LockNode")
            .field("id", &self.config.id)
            .field("epoch", &self.config.epoch)
            .field("touched", &self.locks.len())
            .field("busy", &busy.collect::<alloc::vec::Vec<_>>())
            .field("roomless", &self.roomless)
            .field("due", &self.due)
            .field("homes", &self.homes)
            .field("last_reports", &self.last_reports)
            .field("rebuilding", &self.rebuilding)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
