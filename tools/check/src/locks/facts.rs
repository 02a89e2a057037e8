//! What the properties look at: what every machine says of every lock, taken anew where a step has touched it.
//!
//! A call about one lock names it, and so does every effect; only where a copy had to make room, or a call is about none, all
//! locks of the node are looked at. What must always hold: a fact is what the machine would say now. At rest that is checked, for
//! a step that does not name all that it touches would hide from the properties what it did.

use node::LockNode;
use node::locks::LockView;
use switch::locks::EntryView;
use wire::{Copyset, GlobalAddr, NodeId, Rules, Term};

use super::Locks;
use crate::rack::{Place, Touched};

/// What a node says of a lock.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Fact {
    pub(super) view: Option<LockView>,
    /// As the directory of the lock's home.
    pub(super) entry: Option<EntryView>,
    /// The term of the data in its memory.
    pub(super) home: Option<Term>,
    /// It says that they are lost.
    pub(super) lost: bool,
}

/// What everybody says, by lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub(super) switch: Vec<Option<EntryView>>,
    pub(super) nodes: Vec<Vec<Fact>>,
    /// How many nodes' facts say that a lock is lost.
    lost: usize,
    /// By node, how many copies had made room.
    evicted: Vec<u64>,
}

/// Which locks a step may have changed, at the places that it touched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    /// These, by number.
    Some(Copyset),
    /// All of them.
    All,
}

impl Named {
    pub(super) const NOTHING: Self = Self::Some(Copyset::EMPTY);
}

impl Facts {
    pub(super) fn new(nodes: usize, locks: usize) -> Self {
        let nothing = vec![Fact::default(); locks];
        Self { switch: vec![None; locks], nodes: vec![nothing; nodes], lost: 0, evicted: vec![0; nodes] }
    }

    /// True if some home says that a lock is lost.
    pub(super) fn any_lost(&self) -> bool {
        self.lost > 0
    }

    /// The entry of a lock, in the switch or at its home.
    pub(super) fn entry(&self, lock: usize, home: NodeId) -> Option<EntryView> {
        self.switch[lock].or(self.nodes[home.index()][lock].entry)
    }
}

impl Fact {
    pub(super) fn of<R: Rules>(machine: &LockNode<R>, lock: GlobalAddr) -> Self {
        let view = machine.view(lock);
        if lock.home() != machine.id() {
            return Self { view, ..Self::default() };
        }
        let home = machine.home_of(lock).map(|(term, _)| term);
        Self { view, entry: machine.entry(lock), home, lost: machine.has_lost(lock) }
    }
}

impl<R: Rules> Locks<R> {
    /// Something may have changed at this place: of this lock, or of any.
    pub(crate) fn touch(&mut self, place: Place, about: Option<GlobalAddr>) {
        self.touched.touch(place);
        let number = about.and_then(|lock| self.numbers.get(&lock));
        self.named = match (self.named, number) {
            (Named::Some(named), Some(number)) => Named::Some(named.with(*number)),
            _ => Named::All,
        };
    }

    /// All locks, as a set of their numbers.
    pub(super) fn all(&self) -> Copyset {
        (0..self.locks.len()).map(|lock| NodeId(lock as u16)).collect()
    }

    /// Which locks are to be looked at after a step.
    pub(super) fn named_at(&mut self, touched: Touched) -> Copyset {
        let mut named = std::mem::replace(&mut self.named, Named::NOTHING);
        for node in touched.nodes.iter().map(NodeId::index) {
            let evicted = self.nodes[node].0.counters().evicted;
            if evicted != self.facts.evicted[node] {
                (self.facts.evicted[node], named) = (evicted, Named::All);
            }
        }
        match named {
            Named::Some(named) => named,
            Named::All => self.all(),
        }
    }

    /// Takes these locks anew at what was touched; those of which something has changed.
    pub(super) fn refresh(&mut self, touched: Touched, named: Copyset) -> Copyset {
        let mut changed = Copyset::EMPTY;
        for at in named.iter().map(NodeId::index) {
            let (lock, _) = &self.locks[at];
            let mut take =
                |is_new: bool| changed = if is_new { changed.with(NodeId(at as u16)) } else { changed };
            if touched.switch {
                let now = self.switch.entry(*lock);
                take(now != self.facts.switch[at]);
                self.facts.switch[at] = now;
            }
            for node in touched.nodes.iter() {
                let now = Fact::of(&self.nodes[node.index()].0, *lock);
                let before = &mut self.facts.nodes[node.index()][at];
                take(now != *before);
                self.facts.lost = self.facts.lost + usize::from(now.lost) - usize::from(before.lost);
                *before = now;
            }
        }
        changed
    }

    /// True if nothing has changed that was not touched.
    pub(super) fn facts_are_so(&mut self) -> bool {
        let nodes = (0..self.nodes.len()).map(|node| NodeId(node as u16)).collect();
        self.refresh(Touched { nodes, switch: true }, self.all()).is_empty()
    }
}
