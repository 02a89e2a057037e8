//! Who is in the rack from an epoch on, and who is not any more: what coordinator and members know alike.
//!
//! What must always hold: two rosters of one epoch are equal.

use alloc::vec::Vec;

use node::{Kept, Placement, View};
use wire::{Copyset, Incarnation, NodeId, SwitchEpoch};

/// An incarnation of a node, told apart from all others by a random number that its process drew when it started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Session(pub u64);

/// The last incarnation of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RosterEntry {
    /// The epoch in which it began: so lives are numbered upwards, also where nobody remembers the last one.
    pub incarnation: Incarnation,
    /// Whose it is.
    pub session: Session,
    /// It goes on.
    pub alive: bool,
    /// The node has had an incarnation before this one.
    pub returned: bool,
}

/// The rack in one epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roster {
    /// The epoch; 0 before the first.
    pub epoch: SwitchEpoch,
    /// The last incarnation of each node. A node that has never been there has session 0, and is not alive.
    pub entries: Vec<RosterEntry>,
    /// So many nodes the rack began with; others were added. What all have to count in one way, as long as the rack lasts, counts these.
    pub founders: usize,
    /// Where each memory with copies is. As many as founders, or none.
    pub memories: Vec<Kept>,
}

impl Roster {
    /// Before the first epoch.
    pub(crate) fn empty(nodes: usize) -> Self {
        Self {
            epoch: SwitchEpoch(0),
            entries: alloc::vec![RosterEntry::default(); nodes],
            founders: 0,
            memories: Vec::new(),
        }
    }

    /// The nodes that are up.
    pub fn live(&self) -> Copyset {
        let up = self.entries.iter().enumerate().filter(|(_, entry)| entry.alive);
        up.map(|(node, _)| NodeId(u16::try_from(node).expect("at most 64 nodes"))).collect()
    }

    /// An epoch begins, in which these nodes are not what they were, and these have copied memories: who has what of memories with
    /// copies, and who gets it. One that nobody has any more begins anew.
    pub(crate) fn keep_copies(&mut self, who: &Placement, changed: Copyset, copied: &[(NodeId, Copyset)]) {
        self.memories.resize(if who.copies > 1 { self.founders } else { 0 }, Kept::default());
        let life = Incarnation(self.epoch.0);
        for (node, whole) in copied {
            for (i, kept) in self.memories.iter_mut().enumerate() {
                if whole.contains(NodeId(i as u16)) {
                    kept.by = kept.by.with(*node);
                }
            }
        }
        for (i, kept) in self.memories.iter_mut().enumerate() {
            kept.by = kept.by.without_all(changed);
            kept.place(i, who);
            if kept.by.is_empty() && !who.up.is_empty() {
                let again = kept.life > Incarnation(0);
                *kept = Kept { again, ..Kept::anew(life, i, who) };
            }
        }
    }

    /// True if the node is up in this very incarnation.
    pub fn is_alive(&self, node: NodeId, session: Session) -> bool {
        self.entries.get(node.index()).is_some_and(|entry| entry.alive && entry.session == session)
    }

    /// What a node is told. The shadow is the lowest node that is up, or node 0 if none is.
    pub fn view(&self) -> View {
        View {
            epoch: self.epoch,
            incarnations: self.entries.iter().map(|entry| entry.alive.then_some(entry.incarnation)).collect(),
            shadow: self.live().iter().next().unwrap_or_default(),
            memories: self.memories.clone(),
        }
    }
}

sorted::key!(Session: u64 = |it| it.0);
