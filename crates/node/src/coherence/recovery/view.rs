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
    /// The nodes that are to have it, too, and are getting it.
    pub to: Copyset,
}

/// Which nodes may keep memories with copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Nodes of the rack, which are a ring.
    pub nodes: usize,
    /// How many are to keep each memory.
    pub copies: usize,
    /// Those that are up.
    pub up: Copyset,
    /// Those that are about to leave: they keep what others do not have yet, and get nothing.
    pub draining: Copyset,
}

impl Placement {
    /// How many nodes are up and stay.
    pub const fn staying(&self) -> usize {
        self.up.without_all(self.draining).len()
    }

    /// The nodes that are up, from the `i`th on: those that stay, and those that do not.
    fn ring(&self, i: usize, stay: bool) -> impl Iterator<Item = NodeId> {
        let Self { up, draining, .. } = *self;
        ring(self.nodes, i).filter(move |node| up.contains(*node) && draining.contains(*node) != stay)
    }
}

impl Kept {
    /// Of those who have memory `i`, the first so many keep it; one that drains counts only where too few stay. The first so many of
    /// those that stay get it, if anybody has it.
    pub fn place(&mut self, i: usize, who: &Placement) {
        let has = self.by;
        let have = |stay| who.ring(i, stay).filter(move |node| has.contains(*node));
        self.by = have(true).chain(have(false)).take(who.copies).collect();
        self.to =
            if self.by.is_empty() { Copyset::EMPTY } else { who.ring(i, true).take(who.copies).collect() };
        self.to = self.to.without_all(self.by);
    }

    /// Memory `i`, empty: on the first nodes that are up, from node `i` on, in a ring.
    pub fn anew(life: Incarnation, i: usize, who: &Placement) -> Self {
        let mut kept = Self { life, again: false, by: who.up, to: Copyset::EMPTY };
        kept.place(i, who);
        kept
    }
}

impl View {
    /// The nodes that have the `i`th memory with copies whole, in the order in which they serve it: the first one does.
    pub fn hosts(&self, i: usize) -> impl Iterator<Item = NodeId> + '_ {
        self.those_up(i, self.memories.get(i).map_or(Copyset::EMPTY, |kept| kept.by))
    }

    /// The nodes that are getting it.
    pub fn filling(&self, i: usize) -> impl Iterator<Item = NodeId> + '_ {
        self.those_up(i, self.memories.get(i).map_or(Copyset::EMPTY, |kept| kept.to))
    }

    fn those_up(&self, i: usize, of: Copyset) -> impl Iterator<Item = NodeId> + '_ {
        let is_up = |node: &NodeId| self.incarnations[node.index()].is_some();
        ring(self.incarnations.len(), i).filter(move |node| of.contains(*node) && is_up(node))
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
