//! Which nodes hold a copy of a block: one bit a node (Concordia, section 5.1, the COPYSET array).

use core::fmt;

use crate::ids::NodeId;

/// A set of nodes, as a bitmap. Racks of up to [`Copyset::NODES`] nodes fit; beyond that a coarse vector would
/// be needed (Concordia, section 5.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Copyset(u64);

impl Copyset {
    /// How many nodes a copyset can tell apart.
    pub const NODES: usize = 64;
    /// No node.
    pub const EMPTY: Self = Self(0);

    /// Just this node.
    ///
    /// # Panics
    /// If the node does not fit.
    pub const fn only(node: NodeId) -> Self {
        assert!(node.index() < Self::NODES, "a copyset holds 64 nodes");
        Self(1 << node.0)
    }

    /// The set with this bitmap.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bitmap: bit `i` is node `i`.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// True if the node is in the set.
    pub const fn contains(self, node: NodeId) -> bool {
        node.index() < Self::NODES && self.0 >> node.0 & 1 == 1
    }

    /// The set with the node in it.
    #[must_use]
    pub const fn with(self, node: NodeId) -> Self {
        Self(self.0 | Self::only(node).0)
    }

    /// The set without the node.
    #[must_use]
    pub const fn without(self, node: NodeId) -> Self {
        if node.index() < Self::NODES { Self(self.0 & !(1 << node.0)) } else { self }
    }

    /// The nodes that are in this set and not in the other.
    #[must_use]
    pub const fn without_all(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The nodes in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if some node is in both sets.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// How many nodes.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// True without nodes.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The node that a random number picks, if there is any: all are equally likely.
    pub fn pick(self, random: u32) -> Option<NodeId> {
        let n = self.len() as u64;
        // Multiply-shift instead of a remainder: no division, no bias worth naming below 64 nodes.
        let nth = (u64::from(random) * n) >> 32;
        let mut rest = self.0;
        for _ in 0..nth {
            rest &= rest - 1;
        }
        (rest != 0).then(|| NodeId(rest.trailing_zeros() as u16))
    }

    /// The nodes, lowest first.
    pub fn iter(self) -> impl Iterator<Item = NodeId> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let node = NodeId(rest.trailing_zeros() as u16);
            rest &= rest - 1;
            Some(node)
        })
    }
}

impl FromIterator<NodeId> for Copyset {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        nodes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for Copyset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|n| n.0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_can_be_picked_and_nobody_else() {
        let set: Copyset = [1, 7, 63].map(NodeId).into_iter().collect();
        let mut picked = Copyset::EMPTY;
        for random in (0..=u32::MAX).step_by(1 << 28) {
            picked = picked.with(set.pick(random).unwrap());
        }
        assert_eq!(picked, set);
        assert_eq!(set.pick(u32::MAX), Some(NodeId(63)));
        assert_eq!(Copyset::EMPTY.pick(12345), None);
    }

    #[test]
    fn iteration_names_the_members_in_order() {
        let set = Copyset::from_bits(1 << 63 | 0b1010);
        assert!(set.iter().map(|n| n.0).eq([1, 3, 63]));
        assert_eq!(set.len(), 3);
        assert!(set.contains(NodeId(63)) && !set.contains(NodeId(64)));
    }
}
