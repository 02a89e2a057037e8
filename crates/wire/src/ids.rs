//! Who takes part: nodes, requesters and the agents on a node; and the numbers that tell an old message from
//! a new one.

use core::fmt;

/// A server of the rack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeId(pub u16);

impl NodeId {
    /// For indexing per-node tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A requester slot of a node: it has at most one coherence event open, and one unlock of the event before it
/// unacknowledged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SlotId(pub u16);

impl SlotId {
    /// Requester slots that a node has. The switch's per-requester arrays are sized by it. (Nodes of simulated racks can have more,
    /// in multiples of this, for block locks alone.)
    pub const PER_NODE: usize = 64;
    /// The slot of the home agent's migration events (ADD-TO-SWITCH, REMOVE-FROM-SWITCH).
    pub const MIGRATION: Self = Self(Self::PER_NODE as u16 - 1);
    /// The slot of the allocator's PURGE events.
    pub const RECLAIM: Self = Self(Self::PER_NODE as u16 - 2);
    /// Slots that application threads may occupy for misses, evictions and held block locks.
    pub const FOR_THREADS: usize = Self::PER_NODE - 2;

    /// Of those, how many may hold block locks at a time: the others are left for misses, without which no
    /// lock holder could go on.
    pub const FOR_LOCKS: usize = Self::FOR_THREADS / 2;

    /// For indexing per-slot tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One requester of the rack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequesterId {
    /// The node it belongs to.
    pub node: NodeId,
    /// Its slot there.
    pub slot: SlotId,
}

impl RequesterId {
    /// Rows of all nodes that a rack can have, of [`SlotId::PER_NODE`] slots each.
    const OF_ALL_NODES: usize = crate::Copyset::NODES * SlotId::PER_NODE;

    /// A number for tables with a row for each requester: dense where nodes have [`SlotId::PER_NODE`] slots.
    pub const fn index(self) -> usize {
        let (part, slot) = (self.slot.index() / SlotId::PER_NODE, self.slot.index() % SlotId::PER_NODE);
        part * Self::OF_ALL_NODES + self.node.index() * SlotId::PER_NODE + slot
    }

    /// The requester with this number.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(index: usize) -> Self {
        let narrow = |n: usize| u16::try_from(n).expect("a node has fewer than 2^16 slots");
        let (part, row) = (index / Self::OF_ALL_NODES, index % Self::OF_ALL_NODES);
        let slot = part * SlotId::PER_NODE + row % SlotId::PER_NODE;
        Self { node: NodeId(narrow(row / SlotId::PER_NODE)), slot: SlotId(narrow(slot)) }
    }

    /// Rows of a table for so many nodes, which have so many slots more than [`SlotId::PER_NODE`] each.
    pub const fn rows(nodes: usize, more_slots: usize) -> usize {
        if more_slots == 0 {
            nodes * SlotId::PER_NODE
        } else {
            (1 + more_slots / SlotId::PER_NODE) * Self::OF_ALL_NODES
        }
    }

    /// Which rows of a table of so many are a node's.
    pub fn rows_of(node: NodeId, rows: usize) -> impl Iterator<Item = core::ops::Range<usize>> {
        let first = (node.index() * SlotId::PER_NODE..rows).step_by(Self::OF_ALL_NODES);
        first.map(|first| first..first + SlotId::PER_NODE)
    }
}

/// Numbers the coherence events of one requester, from 1 up, never reused. Consecutive events differ in
/// parity, so that the unlock of one may be in flight while the next is requested (Concordia, section 5.3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first event.
    pub const NONE: Self = Self(0);

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// 0 for even numbers, 1 for odd ones.
    pub const fn parity(self) -> usize {
        (self.0 & 1) as usize
    }
}

/// Counts the incarnations of the rack's switch: state in a switch is worth nothing to packets of another incarnation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SwitchEpoch(pub u32);

/// Counts the incarnations of a node: a packet sent before its sender restarted must not act afterwards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Incarnation(pub u32);

/// The machine that a packet comes from or goes to: the switch itself, or one of the agents on a node. In a
/// rack of real machines it is a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Endpoint {
    /// The coherence program of the switch.
    Switch,
    /// The requesters of a node.
    Requester(NodeId),
    /// The agent that gives away and downgrades what the node has cached.
    CacheAgent(NodeId),
    /// The agent of the memory whose home the node is.
    HomeAgent(NodeId),
    /// The node's allocator.
    Allocator(NodeId),
    /// The shadow of the switch's TAG array, on whichever node keeps it.
    Shadow(NodeId),
}

impl Endpoint {
    /// The node that the endpoint is on, if it is not the switch.
    pub const fn node(self) -> Option<NodeId> {
        match self {
            Self::Switch => None,
            Self::Requester(n)
            | Self::CacheAgent(n)
            | Self::HomeAgent(n)
            | Self::Allocator(n)
            | Self::Shadow(n) => Some(n),
        }
    }

    /// Wire form: agent, node.
    pub const fn to_wire(self) -> (u8, u16) {
        match self {
            Self::Switch => (0, 0),
            Self::Requester(n) => (1, n.0),
            Self::CacheAgent(n) => (2, n.0),
            Self::HomeAgent(n) => (3, n.0),
            Self::Allocator(n) => (4, n.0),
            Self::Shadow(n) => (5, n.0),
        }
    }

    /// The endpoint with this wire form.
    pub const fn from_wire(agent: u8, node: u16) -> Option<Self> {
        let n = NodeId(node);
        match agent {
            0 if node == 0 => Some(Self::Switch),
            1 => Some(Self::Requester(n)),
            2 => Some(Self::CacheAgent(n)),
            3 => Some(Self::HomeAgent(n)),
            4 => Some(Self::Allocator(n)),
            5 => Some(Self::Shadow(n)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requester_has_a_row_of_its_own() {
        for (nodes, more_slots) in [(1, 0), (3, 0), (64, 0), (3, 128)] {
            let rows = RequesterId::rows(nodes, more_slots);
            let mut seen = alloc::vec![false; rows];
            for node in (0..nodes as u16).map(NodeId) {
                let own: alloc::vec::Vec<usize> = RequesterId::rows_of(node, rows).flatten().collect();
                assert_eq!(own.len(), SlotId::PER_NODE + more_slots);
                for slot in (0..own.len() as u16).map(SlotId) {
                    let requester = RequesterId { node, slot };
                    let row = requester.index();
                    assert!(own.contains(&row) && !core::mem::replace(&mut seen[row], true));
                    assert_eq!(RequesterId::of(row), requester);
                }
            }
        }
    }
}
