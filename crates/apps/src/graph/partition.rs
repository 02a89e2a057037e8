//! Which worker has which vertex, and under which number.
//!
//! Vertices are shuffled by a bijection that follows from a salt, then dealt out in turn. So every worker has as many
//! as any other one, hubs are spread, and nobody keeps a table. A vertex's *slot* is its number in this order: the
//! slots of a worker lie side by side, and so do those of a node. Slots are cut into *segments* of 65536 that never
//! cross nodes.
//!
//! What must always hold: [`Partition::vertex_of`] undoes [`Partition::slot_of`]. A worker's slots begin at a
//! multiple of 64, so that its bits of a frontier are words of its own.

use random::mix;

use super::error::Error;

/// Vertices in a segment: what 16 bits tell apart.
pub(super) const SEGMENT: u64 = 1 << 16;
/// Rounds of the shuffle.
const ROUNDS: u64 = 4;

/// How vertices are divided among the workers of a rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    vertices: u64,
    nodes: u64,
    threads: u64,
    salt: u64,
    /// Slots of a worker.
    each: u64,
    /// The shuffle works on numbers of twice so many bits.
    half_bits: u32,
}

impl Partition {
    /// Divides vertices among so many threads on each of so many nodes.
    ///
    /// # Errors
    /// [`Error::NoVertices`], and [`Error::TooManyVertices`] if slots have more than 32 bits.
    pub fn new(vertices: u64, nodes: usize, threads: usize, salt: u64) -> Result<Self, Error> {
        if vertices == 0 {
            return Err(Error::NoVertices);
        }
        let (nodes, threads) = (nodes as u64, threads as u64);
        let each = vertices.div_ceil(nodes * threads).next_multiple_of(64);
        let half_bits = (64 - (vertices - 1).leading_zeros()).div_ceil(2).max(1);
        let this = Self { vertices, nodes, threads, salt, each, half_bits };
        // Segments have 16 bits, and the last one of each node is not full.
        let most = (1 << 32) - nodes * SEGMENT;
        if this.slots() > most {
            return Err(Error::TooManyVertices { vertices, most: most - 64 * nodes * threads });
        }
        Ok(this)
    }

    /// How many vertices there are.
    pub fn vertices(&self) -> u64 {
        self.vertices
    }

    /// How many nodes have them.
    pub fn nodes(&self) -> usize {
        self.nodes as usize
    }

    /// How many threads each node has.
    pub fn threads(&self) -> usize {
        self.threads as usize
    }

    /// Threads of all nodes.
    pub fn workers(&self) -> usize {
        (self.nodes * self.threads) as usize
    }

    pub(super) fn salt(&self) -> u64 {
        self.salt
    }

    /// Slots of a worker; a few of them have no vertex.
    pub(super) fn slots_of_worker(&self) -> usize {
        self.each as usize
    }

    pub(super) fn slots_of_node(&self) -> u64 {
        self.each * self.threads
    }

    /// Slots of all.
    pub(super) fn slots(&self) -> u64 {
        self.each * self.threads * self.nodes
    }

    fn segments_of_node(&self) -> u64 {
        self.slots_of_node().div_ceil(SEGMENT)
    }

    pub(super) fn segments(&self) -> usize {
        (self.segments_of_node() * self.nodes) as usize
    }

    /// The node of a segment, its first slot there, and how many it has.
    pub(super) fn segment(&self, segment: usize) -> (usize, u64, usize) {
        let (node, inside) =
            (segment as u64 / self.segments_of_node(), segment as u64 % self.segments_of_node());
        let first = inside * SEGMENT;
        (node as usize, first, (self.slots_of_node() - first).min(SEGMENT) as usize)
    }

    /// The segment of a slot, and where it is there.
    pub(super) fn in_segment(&self, slot: u32) -> (u64, u64) {
        let (node, inside) = (u64::from(slot) / self.slots_of_node(), u64::from(slot) % self.slots_of_node());
        (node * self.segments_of_node() + inside / SEGMENT, inside % SEGMENT)
    }

    pub(super) fn worker_of(&self, slot: u32) -> usize {
        (u64::from(slot) / self.each) as usize
    }

    /// The slot of a vertex.
    pub(super) fn slot_of(&self, vertex: u32) -> u32 {
        let mut at = u64::from(vertex);
        loop {
            at = self.shuffled(at);
            // Numbers beyond the last vertex are walked through: what comes of it is a bijection of the others.
            if at < self.vertices {
                break;
            }
        }
        let workers = self.nodes * self.threads;
        ((at % workers) * self.each + at / workers) as u32
    }

    /// The vertex of a slot; none if it has none.
    pub(super) fn vertex_of(&self, slot: u32) -> Option<u32> {
        let workers = self.nodes * self.threads;
        let (worker, inside) = (u64::from(slot) / self.each, u64::from(slot) % self.each);
        let mut at = inside * workers + worker;
        if at >= self.vertices {
            return None;
        }
        loop {
            at = self.unshuffled(at);
            if at < self.vertices {
                return Some(at as u32);
            }
        }
    }

    fn round(&self, half: u64, round: u64) -> u64 {
        mix(half ^ self.salt.wrapping_add(round << 40)) & ((1 << self.half_bits) - 1)
    }

    /// A Feistel network.
    fn shuffled(&self, at: u64) -> u64 {
        let (mut left, mut right) = (at >> self.half_bits, at & ((1 << self.half_bits) - 1));
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.round(right, round));
        }
        left << self.half_bits | right
    }

    fn unshuffled(&self, at: u64) -> u64 {
        let (mut left, mut right) = (at >> self.half_bits, at & ((1 << self.half_bits) - 1));
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.round(left, round), left);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_vertex_has_a_slot_of_its_own_and_is_found_there() {
        for (vertices, nodes, threads) in
            [(1, 1, 1), (2, 4, 2), (1000, 3, 2), (70_001, 1, 1), (200_000, 2, 1)]
        {
            let partition = Partition::new(vertices, nodes, threads, 7).unwrap();
            let mut slots = BTreeSet::new();
            for vertex in 0..vertices as u32 {
                let slot = partition.slot_of(vertex);
                assert!(u64::from(slot) < partition.slots() && slots.insert(slot), "{vertex} of {vertices}");
                assert_eq!(partition.vertex_of(slot), Some(vertex));
                let (segment, inside) = partition.in_segment(slot);
                let (node, first, len) = partition.segment(segment as usize);
                assert!(inside < len as u64);
                assert_eq!(node as u64 * partition.slots_of_node() + first + inside, u64::from(slot));
            }
            let all = (0..partition.slots() as u32).filter_map(|slot| partition.vertex_of(slot)).count();
            assert_eq!(all as u64, vertices);
        }
    }

    #[test]
    fn workers_have_equal_numbers_of_vertices() {
        let partition = Partition::new(10_001, 3, 2, 1).unwrap();
        let mut counts = [0_u32; 6];
        (0..10_001).for_each(|vertex| counts[partition.worker_of(partition.slot_of(vertex))] += 1);
        assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
    }

    #[test]
    fn more_vertices_than_slots_have_numbers_for_are_refused() {
        assert!(Partition::new(u64::from(u32::MAX) - 100_000, 1, 1, 0).is_ok());
        let error = Partition::new(1 << 32, 4, 2, 0).unwrap_err();
        assert!(matches!(error, Error::TooManyVertices { .. }), "{error}");
        assert_eq!(Partition::new(0, 1, 1, 0), Err(Error::NoVertices));
    }
}
