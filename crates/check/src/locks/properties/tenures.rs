//! Within an epoch tenures only grow, those of a directory's entry, of what a node refuses, and of the data at home.

use std::collections::BTreeMap;

use wire::{GlobalAddr, LockRules, NodeId, Tenure};

use crate::locks::Locks;

/// The highest seen at each place.
#[derive(Clone, Debug, Default)]
pub struct Tenures(BTreeMap<(Where, GlobalAddr), Tenure>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Where {
    Switch,
    Directory(NodeId),
    Fence(NodeId),
    Home(NodeId),
}

impl Tenures {
    /// An epoch begins for the switch, or a node has died.
    pub(crate) fn forget(&mut self, dead: Option<NodeId>) {
        self.0.retain(|(place, _), _| place.node() != dead);
    }

    /// A node hears of an epoch. The data in its memory stay what they are.
    pub(crate) fn forget_packets_of(&mut self, node: NodeId) {
        self.0.retain(|(place, _), _| place.node() != Some(node) || matches!(place, Where::Home(_)));
    }
}

impl Where {
    const fn node(self) -> Option<NodeId> {
        match self {
            Self::Switch => None,
            Self::Directory(node) | Self::Fence(node) | Self::Home(node) => Some(node),
        }
    }
}

pub(super) fn check<R: LockRules>(locks: &mut Locks<R>) -> Result<(), String> {
    for (lock, _) in &locks.locks {
        let mut now = vec![(Where::Switch, locks.switch.entry(*lock).map(|entry| entry.tenure))];
        for (machine, _) in &locks.nodes {
            let id = machine.id();
            now.push((Where::Directory(id), machine.entry(*lock).map(|entry| entry.tenure)));
            now.push((Where::Fence(id), machine.view(*lock).map(|view| view.fence)));
            now.push((Where::Home(id), machine.home_of(*lock).map(|(tenure, _)| tenure)));
        }
        for (place, tenure) in now {
            let Some(tenure) = tenure else { continue };
            let before = locks.tenures.0.entry((place, *lock)).or_default();
            if tenure < *before {
                return Err(format!(
                    "the tenure of lock {lock} at {place:?} fell from {before:?} to {tenure:?}"
                ));
            }
            *before = tenure;
        }
    }
    Ok(())
}
