//! Who is in the rack: what the control plane tells every node at the start of an epoch.

use alloc::vec::Vec;

use wire::{Copyset, Incarnation, NodeId, SwitchEpoch};

/// The rack from an epoch on. The control plane makes one for every change (a switch or a node stopped, or
/// started again) and hands it to all live nodes, in any order and at any time. A node may miss one if it gets a
/// later one instead.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct View {
    /// The incarnation of the switch that begins.
    pub epoch: SwitchEpoch,
    /// The incarnation that each node is in; `None`: it is down.
    pub incarnations: Vec<Option<Incarnation>>,
    /// The node that shadows the switch's TAG array.
    pub shadow: NodeId,
    /// The memories with copies: as many as nodes, or none.
    pub memories: Vec<Kept>,
}

/// Where a memory with copies is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Kept {
    /// When the last copy is gone, another life of the memory begins, empty.
    pub life: Incarnation,
    /// It has had a life before this one: what was in it is lost.
    pub again: bool,
    /// The nodes that have it whole.
    pub by: Copyset,
}

impl Kept {
    /// Of those who have memory `i`, only the first so many that are up.
    pub fn trim(&mut self, i: usize, (nodes, copies): (usize, usize), up: Copyset) {
        let by = self.by;
        self.by =
            ring(nodes, i).filter(|node| by.contains(*node) && up.contains(*node)).take(copies).collect();
    }

    /// Memory `i`, empty: on the first nodes that are up, from node `i` on, in a ring.
    pub fn anew(life: Incarnation, i: usize, (nodes, copies): (usize, usize), up: Copyset) -> Self {
        Self {
            life,
            again: false,
            by: ring(nodes, i).filter(|node| up.contains(*node)).take(copies).collect(),
        }
    }
}

impl View {
    /// The nodes that have the `i`th memory with copies whole, in the order in which they serve it: the first one does.
    pub fn hosts(&self, i: usize) -> impl Iterator<Item = NodeId> + '_ {
        let is_up = |node: &NodeId| self.incarnations[node.index()].is_some();
        let by = self.memories.get(i).map_or(Copyset::EMPTY, |kept| kept.by);
        ring(self.incarnations.len(), i).filter(move |node| by.contains(*node) && is_up(node))
    }

    /// The nodes that are to have it, too, and do not have it whole: among the first that are up, so that there are so many copies.
    /// None, if nobody has it.
    pub fn filling(&self, i: usize, copies: usize) -> impl Iterator<Item = NodeId> + '_ {
        let is_kept = self.hosts(i).next().is_some();
        let by = self.memories.get(i).map_or(Copyset::EMPTY, |kept| kept.by);
        let up = ring(self.incarnations.len(), i).filter(|node| self.incarnations[node.index()].is_some());
        up.take(copies).filter(move |node| is_kept && !by.contains(*node))
    }

    /// The node that has this memory: a node's own one, or one with copies that it serves. None, if nobody has.
    pub fn server_of(&self, memory: NodeId) -> Option<NodeId> {
        match memory.index().checked_sub(self.incarnations.len()) {
            Some(i) => self.hosts(i).next(),
            None => self.incarnations[memory.index()].map(|_| memory),
        }
    }

    /// True if this memory with copies has had a life before the one that it is in.
    pub fn is_again(&self, memory: NodeId) -> bool {
        let nth = memory.index().checked_sub(self.incarnations.len());
        nth.and_then(|i| self.memories.get(i)).is_some_and(|kept| kept.again)
    }

    /// The incarnation that this memory is in, if somebody has it.
    pub fn life_of(&self, memory: NodeId) -> Option<Incarnation> {
        self.server_of(memory)?;
        match memory.index().checked_sub(self.incarnations.len()) {
            Some(i) => Some(self.memories[i].life),
            None => self.incarnations[memory.index()],
        }
    }

    /// The nodes that are up.
    pub fn live(&self) -> Copyset {
        self.nodes().filter(|node| self.incarnations[node.index()].is_some()).collect()
    }

    /// The nodes that are down.
    pub fn down(&self) -> Copyset {
        self.nodes().filter(|node| self.incarnations[node.index()].is_none()).collect()
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        ids(self.incarnations.len())
    }
}

fn ids(nodes: usize) -> impl Iterator<Item = NodeId> + use<> {
    (0..nodes).map(|node| NodeId(u16::try_from(node).expect("a rack has at most 64 nodes")))
}

/// All nodes, from the `i`th on.
fn ring(nodes: usize, i: usize) -> impl Iterator<Item = NodeId> {
    ids(nodes).map(move |behind| NodeId(((i + behind.index()) % nodes) as u16))
}
