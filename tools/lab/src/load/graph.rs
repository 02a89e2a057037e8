//! The graph of Figure 16, and what a processor does with it besides accessing memory.
//!
//! A Kronecker graph as Graph500 draws it, with as many edges a vertex as LiveJournal has in the paper: 34.7 million for 4
//! million vertices. Every edge is there in both directions, and numbers of vertices are shuffled, as Graph500 asks for.
//!
//! What must always hold: an edge follows from the graph and its number, so that all systems have the same graph.

use apps::graph::input::Kronecker;
use wire::Nanos;

/// Directed edges for 1000 vertices.
const DEGREE: u64 = 8_675;

/// Of what PageRank adds up, the part that counts.
pub(crate) const DAMPING: f64 = 0.85;

/// A graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomGraph {
    /// The base-2 logarithm of the number of vertices, 6 at least.
    pub scale: u32,
    /// Fixes it.
    pub seed: u64,
}

impl RandomGraph {
    /// How many vertices it has.
    pub const fn vertices(&self) -> u64 {
        1 << self.scale
    }

    /// How many edges are drawn.
    pub const fn drawn(&self) -> u64 {
        self.vertices() * DEGREE / 2_000
    }

    /// How many edges there are: each that is drawn, in both directions.
    pub const fn edges(&self) -> u64 {
        2 * self.drawn()
    }

    /// One of so many parts of the edges that are drawn.
    pub fn part(self, part: usize, parts: usize) -> impl Iterator<Item = (u32, u32)> + Send {
        let begin = |part: usize| self.drawn() * part as u64 / parts as u64;
        let all = Kronecker { scale: self.scale, edge_factor: DEGREE.div_ceil(2_000), seed: self.seed };
        all.range(begin(part)..begin(part + 1))
            .map(move |(from, to)| (self.shuffled(from), self.shuffled(to)))
    }

    /// A bijection: odd factors, and high bits that are added to low ones, can be undone.
    fn shuffled(&self, vertex: u32) -> u32 {
        let (most, half) = (self.vertices() - 1, self.scale.div_ceil(2));
        let mixed = |at: u64| {
            let at = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) & most;
            at ^ at >> half
        };
        mixed(mixed(mixed(u64::from(vertex)))) as u32
    }
}

/// What a processor does in every system, besides accessing memory and handling messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// With an edge: it finds the value of its source and adds it. PageRank in a plain loop on one core takes 300 s for 20
    /// times 1.47 billion edges ("Scalability! But at what COST?", HotOS '15, table 2; from an SSD, and 275 s from memory): 10.2 ns.
    pub edge: Nanos,
    /// With a vertex: a multiplication, a comparison, a division and two stores. Estimated.
    pub vertex: Nanos,
}

impl Work {
    /// What each field says.
    pub const PUBLISHED: Self = Self { edge: Nanos(10), vertex: Nanos(10) };

    /// With so many of both.
    pub(crate) fn of(&self, edges: usize, vertices: usize) -> Nanos {
        Nanos(self.edge.0 * edges as u64 + self.vertex.0 * vertices as u64)
    }
}

/// For each of some vertices, the others of its edges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours {
    begins: Vec<usize>,
    others: Vec<u32>,
}

impl Neighbours {
    /// Of so many vertices: `each` shows all pairs of a vertex and one of its neighbours, the same ones each time.
    pub(crate) fn new(vertices: usize, each: impl Fn(&mut dyn FnMut(u32, u32))) -> Self {
        let mut begins = vec![0; vertices + 1];
        each(&mut |vertex, _| begins[vertex as usize + 1] += 1);
        (1..=vertices).for_each(|at| begins[at] += begins[at - 1]);
        let (mut next, mut others) = (begins.clone(), vec![0; begins[vertices]]);
        each(&mut |vertex, other| {
            others[next[vertex as usize]] = other;
            next[vertex as usize] += 1;
        });
        Self { begins, others }
    }

    /// Those of a vertex.
    pub(crate) fn of(&self, vertex: usize) -> &[u32] {
        &self.others[self.begins[vertex]..self.begins[vertex + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_are_shuffled_and_each_has_one_number() {
        for scale in [6, 9, 12] {
            let graph = RandomGraph { scale, seed: 1 };
            let mut numbers: Vec<u32> = (0..graph.vertices() as u32).map(|at| graph.shuffled(at)).collect();
            assert!(!numbers.is_sorted());
            numbers.sort_unstable();
            assert!((0..).zip(&numbers).all(|(at, number)| at == *number), "2^{scale} vertices");
        }
    }

    #[test]
    fn the_graph_has_as_many_edges_a_vertex_as_livejournal_and_its_parts_are_all_of_it() {
        let graph = RandomGraph { scale: 12, seed: 1 };
        assert!((graph.edges() as f64 / graph.vertices() as f64 - 34.7 / 4.0).abs() < 0.01);
        let parts: Vec<_> = (0..5).flat_map(|part| graph.part(part, 5)).collect();
        assert_eq!(parts.len() as u64, graph.drawn());
        assert_eq!(parts, graph.part(0, 1).collect::<Vec<_>>());
    }
}
