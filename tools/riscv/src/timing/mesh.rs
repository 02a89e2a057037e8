//! What packets take between nodes: a 2D mesh with dimension-ordered routes, wormhole switching, and a port at each end.
//!
//! What must always hold: a port passes one packet at a time, in order.

use wire::roce::batch::Entry;

use super::chip::Chip;

/// Bytes of a word that a packet carries.
const WORD: u64 = 8;
/// Bytes of an extended address.
const ADDRESS: u64 = 16;

/// A node's ports to the mesh.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Ports {
    /// When what was sent last has left.
    sent: u64,
    /// When what came last was there.
    came: u64,
}

/// Bytes of a request.
pub(crate) const fn bytes_of_request(chip: &Chip, entry: &Entry) -> u64 {
    let operands = match entry.operation {
        wire::roce::batch::Operation::Load => 0,
        wire::roce::batch::Operation::CompareSwap => 2,
        _ => 1,
    };
    chip.header + ADDRESS + operands * WORD
}

/// Bytes of an answer; of a posted store's it has no word.
pub(crate) const fn bytes_of_answer(chip: &Chip, is_posted: bool) -> u64 {
    chip.header + if is_posted { 0 } else { WORD }
}

/// Nodes of a row: the mesh is as square as it can be.
const fn columns(nodes: usize) -> usize {
    let mut columns = 1;
    while columns * columns < nodes {
        columns += 1;
    }
    columns
}

/// Hops from one node to another.
pub(crate) const fn hops(nodes: usize, from: usize, to: usize) -> u64 {
    let columns = columns(nodes);
    let (x, y) = (from % columns, from / columns);
    (x.abs_diff(to % columns) + y.abs_diff(to / columns)) as u64
}

impl Ports {
    /// A packet is handed over at a time: when its last flit is at the other end's port.
    pub(crate) fn send(&mut self, chip: &Chip, now: u64, hops: u64, bytes: u64) -> u64 {
        let flits = bytes.div_ceil(chip.flit);
        let begin = (now + chip.packetizer).max(self.sent);
        self.sent = begin + flits;
        begin + hops * chip.hop + flits
    }

    /// A packet's last flit is here at a time: when it is unpacked.
    pub(crate) fn receive(&mut self, chip: &Chip, at: u64, bytes: u64) -> u64 {
        self.came = at.max(self.came + bytes.div_ceil(chip.flit));
        self.came + chip.packetizer
    }
}

/// Cycles until all nodes know that all have come to a barrier: to the farthest node and back, in packets without words.
pub(crate) const fn barrier(chip: &Chip, nodes: usize) -> u64 {
    let way = 2 * chip.packetizer + hops(nodes, 0, nodes - 1) * chip.hop + chip.header.div_ceil(chip.flit);
    if nodes == 1 { 0 } else { 2 * way }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_are_those_of_the_mesh() {
        // 3 x 2.
        assert_eq!((hops(6, 0, 0), hops(6, 0, 2), hops(6, 0, 5), hops(6, 4, 1)), (0, 2, 3, 1));
        assert_eq!(hops(64, 0, 63), 14);
    }

    #[test]
    fn packets_share_a_port_and_arrive_one_after_the_other() {
        let chip = Chip::PAPER;
        let mut ports = Ports::default();
        // Eight flits each.
        assert_eq!(ports.send(&chip, 100, 2, 32), 100 + 4 + 6 + 8);
        assert_eq!(ports.send(&chip, 101, 2, 32), 100 + 4 + 6 + 16);
        assert_eq!(ports.receive(&chip, 50, 32), 54);
        assert_eq!(ports.receive(&chip, 51, 32), 50 + 8 + 4);
    }

    #[test]
    fn nothing_reaches_another_node_within_the_lookahead() {
        let chip = Chip::PAPER;
        let least = Ports::default().send(&chip, 0, 1, bytes_of_answer(&chip, true));
        assert!(least >= chip.lookahead(), "{least}");
    }
}
