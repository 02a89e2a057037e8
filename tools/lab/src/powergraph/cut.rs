//! The vertex cut: which node has which edge, and so which vertices.
//!
//! PowerGraph's own choice for 4 and 8 nodes is a grid. A vertex belongs to one of its cells by a hash, and an edge to a
//! random one of the cells that are in the row or column of both of its ends. So a vertex is on at most a row and a column
//! of nodes.

use sim::system::Random;

use super::engine::Node;
use crate::load::graph::{Neighbours, RandomGraph};

/// Rows and columns, as PowerGraph finds them: some two whose product this is, and that differ by 2 at most.
fn grid(nodes: usize) -> Option<(usize, usize)> {
    let rows = nodes.isqrt();
    (rows..=rows + 2).find(|columns| rows * columns == nodes).map(|columns| (rows, columns))
}

/// Cells that are in the row or column of both.
fn both(columns: usize, nodes: usize, (one, other): (usize, usize)) -> Vec<usize> {
    let near = |a: usize, b: usize| a / columns == b / columns || a % columns == b % columns;
    (0..nodes).filter(|cell| near(*cell, one) && near(*cell, other)).collect()
}

/// Divides a graph among so many nodes of so many threads.
///
/// # Panics
/// If they are no grid.
pub(crate) fn cut(graph: RandomGraph, nodes: usize, threads: usize) -> Vec<Node> {
    let (_, columns) = grid(nodes).expect("the figure has numbers of nodes that are a grid");
    let cells: Vec<Vec<usize>> =
        (0..nodes * nodes).map(|pair| both(columns, nodes, (pair / nodes, pair % nodes))).collect();
    // Vertices are shuffled: their numbers are as good as a hash of them.
    let cell = |vertex: u32| vertex as usize % nodes;
    let (mut edges, vertices) = (vec![Vec::new(); nodes], graph.vertices() as usize);
    let (mut replicas, mut degrees) = (vec![0_u64; vertices], vec![0_u32; vertices]);
    for (from, to) in graph.part(0, 1) {
        let candidates = &cells[cell(from) * nodes + cell(to)];
        let pair = u64::from(from.min(to)) << 32 | u64::from(from.max(to));
        let node = candidates[(Random::new(pair).bits() % candidates.len() as u64) as usize];
        edges[node].push((from, to));
        for vertex in [from, to] {
            replicas[vertex as usize] |= 1 << node;
            degrees[vertex as usize] += 1;
        }
    }
    let masters: Vec<usize> = (0..vertices)
        .map(|vertex| {
            let own = cell(vertex as u32);
            let replicas = &mut replicas[vertex];
            if *replicas == 0 {
                *replicas = 1 << own;
            }
            let count = replicas.count_ones() as usize;
            let nth = (0..nodes).filter(|node| *replicas >> node & 1 == 1).nth(vertex / nodes % count);
            if *replicas >> own & 1 == 1 { own } else { nth.expect("there are so many") }
        })
        .collect();
    let part = |(node, edges): (usize, Vec<(u32, u32)>)| {
        let here: Vec<u32> =
            (0..vertices as u32).filter(|vertex| replicas[*vertex as usize] >> node & 1 == 1).collect();
        let mut local = vec![u32::MAX; vertices];
        (0..).zip(&here).for_each(|(at, vertex)| local[*vertex as usize] = at);
        let neighbours = Neighbours::new(here.len(), |show| {
            for (from, to) in &edges {
                let (from, to) = (local[*from as usize], local[*to as usize]);
                show(from, to);
                show(to, from);
            }
        });
        let of = |vertex: &u32| {
            let at = *vertex as usize;
            (masters[at], replicas[at] & !(1 << masters[at]), degrees[at])
        };
        let known = here.iter().map(of).collect();
        Node::new(node, threads, (here, local), neighbours, known)
    };
    (0..nodes).zip(edges).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_and_eight_nodes_are_grids_and_any_two_cells_share_one() {
        assert_eq!([4, 8, 9, 5].map(grid), [Some((2, 2)), Some((2, 4)), Some((3, 3)), None]);
        for (nodes, columns) in [(4, 2), (8, 4)] {
            for pair in 0..nodes * nodes {
                assert!(!both(columns, nodes, (pair / nodes, pair % nodes)).is_empty());
            }
        }
        assert_eq!(both(4, 8, (0, 5)), [1, 4]);
    }

    #[test]
    fn every_edge_is_on_one_node_and_no_vertex_on_more_than_a_row_and_a_column() {
        let graph = RandomGraph { scale: 10, seed: 2 };
        for (nodes, most) in [(4, 3), (8, 5)] {
            let parts = cut(graph, nodes, 2);
            let edges: usize = parts.iter().map(Node::edges).sum();
            assert_eq!(edges as u64, graph.edges());
            let mut replicas = vec![0; graph.vertices() as usize];
            parts.iter().flat_map(Node::replicas).for_each(|vertex| replicas[vertex as usize] += 1);
            assert!(replicas.iter().all(|count| (1..=most).contains(count)), "{nodes} nodes");
            let masters: usize = parts.iter().map(|part| part.results().count()).sum();
            assert_eq!(masters as u64, graph.vertices(), "each vertex has one master");
        }
    }
}
