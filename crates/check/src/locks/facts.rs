//! What the properties look at: what every machine says of every lock, taken anew where a step has touched it.
//!
//! What must always hold: a fact is what the machine would say now. At rest that is checked, for a step that does not name
//! all that it touches would hide from the properties what it did.

use node::LockNode;
use node::locks::LockView;
use switch::locks::EntryView;
use wire::{Copyset, GlobalAddr, LockRules, NodeId, Tenure};

use super::Locks;
use crate::rack::Touched;

/// What a node says of a lock.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Fact {
    pub(super) view: Option<LockView>,
    /// As the directory of the lock's home.
    pub(super) entry: Option<EntryView>,
    /// The tenure of the data in its memory.
    pub(super) home: Option<Tenure>,
    /// It says that they are lost.
    pub(super) lost: bool,
}

/// What everybody says, by lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub(super) switch: Vec<Option<EntryView>>,
    pub(super) nodes: Vec<Vec<Fact>>,
}

impl Facts {
    pub(super) fn new(nodes: usize, locks: usize) -> Self {
        Self { switch: vec![None; locks], nodes: vec![vec![Fact::default(); locks]; nodes] }
    }

    /// The entry of a lock, in the switch or at its home.
    pub(super) fn entry(&self, lock: usize, home: NodeId) -> Option<EntryView> {
        self.switch[lock].or(self.nodes[home.index()][lock].entry)
    }
}

impl Fact {
    pub(super) fn of<R: LockRules>(machine: &LockNode<R>, lock: GlobalAddr) -> Self {
        let view = machine.view(lock);
        if lock.home() != machine.id() {
            return Self { view, ..Self::default() };
        }
        let home = machine.home_of(lock).map(|(tenure, _)| tenure);
        Self { view, entry: machine.entry(lock), home, lost: machine.has_lost(lock) }
    }
}

impl<R: LockRules> Locks<R> {
    /// Takes anew what was touched; the locks of which something has changed, as a set of their numbers.
    pub(super) fn refresh(&mut self, touched: Touched) -> Copyset {
        let mut changed = Copyset::EMPTY;
        for (at, (lock, _)) in self.locks.iter().enumerate() {
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
                *before = now;
            }
        }
        changed
    }

    /// True if nothing has changed that was not touched.
    pub(super) fn facts_are_so(&mut self) -> bool {
        let nodes = (0..self.nodes.len()).map(|node| NodeId(node as u16)).collect();
        self.refresh(Touched { nodes, switch: true }).is_empty()
    }
}
