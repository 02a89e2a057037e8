//! Within an epoch tenures only grow, those of a directory's entry, of what a node refuses, and of the data at home.

use wire::{Copyset, NodeId, Rules, Tenure};

use crate::locks::Locks;
use crate::rack::Touched;

/// The highest seen at each place, by lock.
#[derive(Clone, Debug)]
pub struct Tenures {
    switch: Vec<Tenure>,
    nodes: Vec<Vec<Highest>>,
}

/// At a node.
#[derive(Clone, Copy, Debug, Default)]
struct Highest {
    directory: Tenure,
    fence: Tenure,
    home: Tenure,
}

impl Tenures {
    pub(crate) fn new(nodes: usize, locks: usize) -> Self {
        Self { switch: vec![Tenure::default(); locks], nodes: vec![vec![Highest::default(); locks]; nodes] }
    }

    /// An epoch begins for the switch.
    pub(crate) fn forget_switch(&mut self) {
        self.switch.fill(Tenure::default());
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
        let grows = |place: &str, before: &mut Tenure, now: Option<Tenure>| {
            let Some(now) = now else { return Ok(()) };
            if now < *before {
                return Err(format!("the tenure of lock {lock} {place} fell from {before:?} to {now:?}"));
            }
            *before = now;
            Ok(())
        };
        if touched.switch {
            let now = locks.facts.switch[at].map(|entry| entry.tenure);
            grows("in the switch", &mut locks.tenures.switch[at], now)?;
        }
        for node in touched.nodes.iter() {
            let fact = &locks.facts.nodes[node.index()][at];
            let highest = &mut locks.tenures.nodes[node.index()][at];
            grows("in a home's directory", &mut highest.directory, fact.entry.map(|entry| entry.tenure))?;
            grows("that a node refuses", &mut highest.fence, fact.view.as_ref().map(|view| view.fence))?;
            grows("of the data at home", &mut highest.home, fact.home)?;
        }
    }
    Ok(())
}
