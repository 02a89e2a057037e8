//! What a connection connects, and the packet numbers that follow from it.
//!
//! What must always hold: both ends derive the same first packet numbers from the same lives and the same attempt.

use wire::{Incarnation, NodeId};

/// What a connection connects: both nodes' lives, and how often it began between those.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Incarnations {
    /// Of this node.
    pub mine: Incarnation,
    /// Of the other one.
    pub theirs: Incarnation,
    /// How often it began between these.
    pub attempt: u32,
}

impl Incarnations {
    /// The number of the first packet from a node of the two to the other. `incarnations` are those of the sender and the receiver.
    fn mix(from: (NodeId, Incarnation), to: (NodeId, Incarnation), attempt: u32) -> u32 {
        let mut z = u64::from(from.1.0) << 32 | u64::from(to.1.0);
        z ^= (u64::from(from.0.0) << 48 | u64::from(to.0.0) << 16).wrapping_mul(random::GOLDEN);
        z = z.wrapping_add(u64::from(attempt).wrapping_mul(0xd1b5_4a32_d192_ed03));
        random::mix(z) as u32 & 0x00ff_ffff
    }

    /// The first packet that this node sends.
    pub fn first_to_peer(&self, me: NodeId, peer: NodeId) -> u32 {
        Self::mix((me, self.mine), (peer, self.theirs), self.attempt)
    }

    /// The first packet that this node gets.
    pub fn first_to_me(&self, me: NodeId, peer: NodeId) -> u32 {
        Self::mix((peer, self.theirs), (me, self.mine), self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_know_the_same_numbers_and_every_incarnation_has_others() {
        let (a, b) = (NodeId(3), NodeId(7));
        let mut seen = alloc::collections::BTreeSet::new();
        for (mine, theirs, attempt) in [(1, 1, 0), (2, 1, 0), (1, 2, 0), (1, 1, 1), (1, 1, 2)] {
            let of_a = Incarnations { mine: Incarnation(mine), theirs: Incarnation(theirs), attempt };
            let of_b = Incarnations { mine: Incarnation(theirs), theirs: Incarnation(mine), attempt };
            assert_eq!(of_a.first_to_peer(a, b), of_b.first_to_me(b, a));
            assert_eq!(of_a.first_to_me(a, b), of_b.first_to_peer(b, a));
            assert!(seen.insert(of_a.first_to_peer(a, b)) && seen.insert(of_b.first_to_peer(b, a)));
        }
    }
}
