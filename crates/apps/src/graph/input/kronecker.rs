//! Kronecker graphs as Graph500 generates them: 2^scale vertices, `edge_factor` times as many edges, each edge drawn
//! by itself.
//!
//! What must always hold: an edge follows from the seed and its number, so that workers generate different parts of
//! one graph.

use std::ops::Range;

use random::{Random, mix};

/// The chance, of 2^16, of each quadrant of the adjacency matrix: Graph500's A = 0.57, B = 0.19, C = 0.19.
const A: u64 = 37_356;
const B: u64 = 12_452;
const C: u64 = 12_452;

/// What is generated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kronecker {
    /// The base-2 logarithm of the number of vertices: up to 31.
    pub scale: u32,
    /// Edges for each vertex.
    pub edge_factor: u64,
    /// Fixes the graph.
    pub seed: u64,
}

impl Kronecker {
    /// How many vertices it has.
    pub fn vertices(&self) -> u64 {
        1 << self.scale
    }

    /// How many edges are drawn.
    pub fn edges(&self) -> u64 {
        self.edge_factor << self.scale
    }

    /// The edges with these numbers.
    pub fn range(self, numbers: Range<u64>) -> impl Iterator<Item = (u32, u32)> + Send {
        numbers.map(move |number| self.edge(number))
    }

    fn edge(&self, number: u64) -> (u32, u32) {
        let mut random = Random::new(mix(self.seed ^ mix(number)));
        let (mut from, mut to, mut bits) = (0, 0, 0);
        for level in 0..self.scale {
            // 64 bits are four levels.
            if level % 4 == 0 {
                bits = random.bits();
            }
            let drawn = bits & 0xffff;
            bits >>= 16;
            from = from << 1 | u32::from(drawn >= A + B);
            to = to << 1 | u32::from((A..A + B).contains(&drawn) || drawn >= A + B + C);
        }
        (from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadrants_are_drawn_as_often_as_graph500_says() {
        let graph = Kronecker { scale: 10, edge_factor: 200, seed: 3 };
        let mut counts = [0_u64; 4];
        for (from, to) in graph.range(0..graph.edges()) {
            assert!(from < 1024 && to < 1024);
            counts[(from >> 9 << 1 | to >> 9) as usize] += 1;
        }
        for (count, share) in counts.into_iter().zip([0.57, 0.19, 0.19, 0.05]) {
            let found = count as f64 / graph.edges() as f64;
            assert!((found - share).abs() < 0.005, "{counts:?}");
        }
    }

    #[test]
    fn parts_are_parts_of_one_graph_and_seeds_are_different_graphs() {
        let graph = Kronecker { scale: 8, edge_factor: 4, seed: 1 };
        let whole: Vec<_> = graph.range(0..graph.edges()).collect();
        let parts: Vec<_> = graph.range(0..300).chain(graph.range(300..graph.edges())).collect();
        assert_eq!(whole, parts);
        let other = Kronecker { seed: 2, ..graph };
        assert_ne!(whole, other.range(0..graph.edges()).collect::<Vec<_>>());
    }
}
