//! Within an epoch terms only grow, those of a directory's entry, of what a node refuses, and of the data at home.

use wire::{Copyset, NodeId, Rules, Term};

use crate::locks::Locks;
use crate::rack::Touched;

/// The highest seen at each place, by lock.
#[derive(Clone, Debug)]
pub struct Terms {
    switch: Vec<Term>,
    nodes: Vec<Vec<Highest>>,
}

/// At a node.
#[derive(Clone, Copy, Debug, Default)]
struct Highest {
    directory: Term,
    fence: Term,
    home: Term,
}

impl Terms {
    pub(crate) fn new(nodes: usize, locks: usize) -> Self {
        Self { switch: vec![Term::default(); locks], nodes: vec![vec![Highest::default(); locks]; nodes] }
    }

    /// An epoch begins for the switch.
    pub(crate) fn forget_switch(&mut self) {
        self.switch.fill(Term::default());
    }

    /// A node has died.
    pub(crate) fn forget_node(&mut self, node: NodeId) {
        self.nodes[node.index()].fill(Highest::default());
    }

    /// A node hears of an epoch. The data in its memory stay what they are.
    pub(crate) fn forget_packets_of(&mut self, node: NodeId) {
        for highest in &mut self.nodes[node.index()] {
            *highest = Highest { home: highest.home, ..Highest::default() };
        }
    }
}

pub(super) fn check<R: Rules>(locks: &mut Locks<R>, touched: Touched, named: Copyset) -> Result<(), String> {
    for at in named.iter().map(NodeId::index) {
        let (lock, _) = locks.locks[at];
        let grows = |place: &str, before: &mut Term, now: Option<Term>| {
            let Some(now) = now else { return Ok(()) };
            if now < *before {
                return Err(format!("the term of lock {lock} {place} fell from {before:?} to {now:?}"));
            }
            *before = now;
            Ok(())
        };
        if touched.switch {
            let now = locks.facts.switch[at].map(|entry| entry.term);
            grows("in the switch", &mut locks.terms.switch[at], now)?;
        }
        for node in touched.nodes.iter() {
            let fact = &locks.facts.nodes[node.index()][at];
            let highest = &mut locks.terms.nodes[node.index()][at];
            grows("in a home's directory", &mut highest.directory, fact.entry.map(|entry| entry.term))?;
            grows("that a node refuses", &mut highest.fence, fact.view.as_ref().map(|view| view.fence))?;
            grows("of the data at home", &mut highest.home, fact.home)?;
        }
    }
    Ok(())
}
