//! The graphs of `programs/graph.c` and what its kernels must come to, by one thread with plain data structures.
//!
//! The graph and the sum over results are as that program has them, word by word; how results are found is not.

use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use random::{GOLDEN, mix};

/// A random graph's kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GraphKind {
    Kronecker,
    Uniform,
}

impl GraphKind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kronecker => "kron",
            Self::Uniform => "uniform",
        }
    }
}

/// Neighbours of each vertex, in order.
pub(super) struct Graph {
    neighbours: Vec<BTreeSet<u64>>,
}

const NEVER: u64 = u64::MAX;
const FAR: u64 = i64::MAX as u64;
const ROUNDS: usize = 10;
const FIXED: u32 = 40;
const DAMPING_PERCENT: u64 = 85;
const SHARES: u32 = 20;

fn weight(u: u64, v: u64) -> u64 {
    1 + mix(u.min(v) << 32 | u.max(v)) % 255
}

fn edge(kind: GraphKind, scale: u32, number: u64) -> (u64, u64) {
    let most = (1_u64 << scale) - 1;
    match kind {
        GraphKind::Uniform => {
            let bits = mix(number * 2 + 1);
            (bits & most, bits >> 32 & most)
        }
        GraphKind::Kronecker => {
            let (mut u, mut v) = (0_u64, 0_u64);
            for level in 0..u64::from(scale) {
                let bits = mix((number * 16 + level / 4) * 2 + 1) >> (16 * (level % 4)) & 0xffff;
                // Quadrants of Graph500: A 0.57, B 0.19, C 0.19, of 65536.
                let (down, right) = match bits {
                    ..37355 => (0, 0),
                    37355..49807 => (0, 1),
                    49807..62259 => (1, 0),
                    _ => (1, 1),
                };
                u = u << 1 | down;
                v = v << 1 | right;
            }
            let other = |vertex: u64| vertex.wrapping_mul(0x9e37_79b1) & most;
            (other(u), other(v))
        }
    }
}

impl Graph {
    pub(super) fn new(kind: GraphKind, scale: u32, degree: u64) -> Self {
        let mut neighbours = vec![BTreeSet::new(); 1 << scale];
        for number in 0..degree << scale {
            let (u, v) = edge(kind, scale, number);
            if u != v {
                neighbours[u as usize].insert(v);
                neighbours[v as usize].insert(u);
            }
        }
        Self { neighbours }
    }

    pub(super) fn neighbours(&self, vertex: u64) -> &BTreeSet<u64> {
        &self.neighbours[vertex as usize]
    }

    pub(super) fn edges(&self) -> usize {
        self.neighbours.iter().map(BTreeSet::len).sum::<usize>() / 2
    }

    /// The first vertex with a neighbour.
    pub(super) fn source(&self) -> u64 {
        let first = self.neighbours.iter().position(|of| !of.is_empty());
        first.expect("a graph of these tests has edges") as u64
    }

    pub(super) fn sum(&self, results: &[u64]) -> u64 {
        let each = (0_u64..).zip(results);
        each.fold(0, |sum, (vertex, result)| {
            sum.wrapping_add(mix(vertex.wrapping_mul(GOLDEN).wrapping_add(*result)))
        })
    }

    pub(super) fn depths(&self, from: u64) -> Vec<u64> {
        let mut depths = vec![NEVER; self.neighbours.len()];
        depths[from as usize] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(u) = queue.pop_front() {
            for &v in self.neighbours(u) {
                if depths[v as usize] == NEVER {
                    depths[v as usize] = depths[u as usize] + 1;
                    queue.push_back(v);
                }
            }
        }
        depths
    }

    /// Dijkstra's algorithm.
    pub(super) fn distances(&self, from: u64) -> Vec<u64> {
        let mut distances = vec![FAR; self.neighbours.len()];
        distances[from as usize] = 0;
        let mut heap = BinaryHeap::from([(std::cmp::Reverse(0), from)]);
        while let Some((std::cmp::Reverse(here), u)) = heap.pop() {
            if here > distances[u as usize] {
                continue;
            }
            for &v in self.neighbours(u) {
                let there = here + weight(u, v);
                if there < distances[v as usize] {
                    distances[v as usize] = there;
                    heap.push((std::cmp::Reverse(there), v));
                }
            }
        }
        distances
    }

    pub(super) fn ranks(&self) -> Vec<u64> {
        let (count, one) = (self.neighbours.len(), 1_u64 << FIXED);
        let base = one * (100 - DAMPING_PERCENT) / 100 / count as u64;
        let mut scores = vec![one / count as u64; count];
        for _ in 0..ROUNDS {
            let share = |v: &u64| scores[*v as usize] / self.neighbours(*v).len() as u64;
            let coming: Vec<u64> = self.neighbours.iter().map(|of| of.iter().map(share).sum()).collect();
            scores = coming.iter().map(|coming| base + coming / 100 * DAMPING_PERCENT).collect();
        }
        scores
    }

    /// The smallest vertex of each one's component.
    pub(super) fn components(&self) -> Vec<u64> {
        let mut labels = vec![NEVER; self.neighbours.len()];
        for first in 0..labels.len() as u64 {
            let mut stack = vec![first];
            while let Some(vertex) = stack.pop() {
                if labels[vertex as usize] == NEVER {
                    labels[vertex as usize] = first;
                    stack.extend(self.neighbours(vertex));
                }
            }
        }
        labels
    }

    /// How much each vertex is in between, for shortest paths from one.
    pub(super) fn dependencies(&self, from: u64) -> Vec<u64> {
        let depths = self.depths(from);
        let mut order: Vec<u64> = (0..depths.len() as u64).filter(|v| depths[*v as usize] != NEVER).collect();
        order.sort_by_key(|vertex| depths[*vertex as usize]);
        let behind = |u: u64| {
            let depths = &depths;
            let is_behind = move |v: &&u64| depths[**v as usize] == depths[u as usize] + 1;
            self.neighbours(u).iter().filter(is_behind).map(|v| *v as usize)
        };
        let mut paths = vec![0_u64; depths.len()];
        paths[from as usize] = 1;
        for &u in &order {
            for v in behind(u) {
                paths[v] += paths[u as usize];
            }
        }
        let mut dependencies = vec![0_u64; depths.len()];
        for &u in order.iter().rev() {
            let of = |v: usize| paths[u as usize] * ((1 << SHARES) + dependencies[v]) / paths[v];
            dependencies[u as usize] = behind(u).map(of).sum();
        }
        dependencies
    }

    pub(super) fn triangles(&self) -> u64 {
        let below = |u: u64| self.neighbours(u).range(..u);
        let mut found = 0;
        for u in 0..self.neighbours.len() as u64 {
            for v in below(u) {
                found += self.neighbours(*v).range(..v).filter(|w| self.neighbours(u).contains(*w)).count();
            }
        }
        found as u64
    }
}
