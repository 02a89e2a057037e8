//! What carries packets between nodes when a seed says how long they take.
//!
//! What must always hold: packets from one node to another arrive in the order in which they were sent.

use std::collections::BTreeMap;

use random::Random;
use wire::roce::batch::Entry;

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Packet {
    /// To an engine: on whose behalf, and what.
    Request(u64, Entry),
    /// To a core: what the word was, and whether the core waits for that, or it is a posted store that is done.
    Answer { old: u64, is_posted: bool },
}

/// Packets that are in flight.
#[derive(Clone, Debug)]
pub(super) struct Fabric {
    nodes: usize,
    /// By when they arrive, and which was sent first.
    in_flight: BTreeMap<(u64, u64), (usize, Packet)>,
    sent: u64,
    /// For each pair of nodes: when the last of its packets arrives.
    last: Vec<u64>,
}

impl Fabric {
    pub(super) fn new(nodes: usize) -> Self {
        Self { nodes, in_flight: BTreeMap::new(), sent: 0, last: vec![0; nodes * nodes] }
    }

    /// Sends a packet that arrives at a time, or later if one before it does.
    pub(super) fn send(&mut self, from: usize, to: usize, at: u64, packet: Packet) {
        let last = &mut self.last[from * self.nodes + to];
        *last = at.max(*last);
        self.in_flight.insert((*last, self.sent), (to, packet));
        self.sent += 1;
    }

    /// The next packet that has arrived by now, and where.
    pub(super) fn arrived(&mut self, now: u64) -> Option<(usize, Packet)> {
        let first = self.in_flight.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }
}

/// Rounds that a packet takes: a few, and sometimes so many that everything else overtakes it.
pub(super) const fn delay(random: &mut Random) -> u64 {
    let most = if random.below(8) == 0 { 64 } else { 6 };
    random.below(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_pair_keep_their_order_and_others_do_not() {
        let packet = |old| Packet::Answer { old, is_posted: false };
        let mut fabric = Fabric::new(3);
        fabric.send(0, 1, 9, packet(1));
        fabric.send(0, 1, 2, packet(2));
        fabric.send(2, 1, 4, packet(3));
        assert_eq!(fabric.arrived(3), None);
        assert_eq!(fabric.arrived(9), Some((1, packet(3))));
        assert_eq!(fabric.arrived(9), Some((1, packet(1))));
        assert_eq!(fabric.arrived(9), Some((1, packet(2))));
        assert!(fabric.is_empty());
    }
}
