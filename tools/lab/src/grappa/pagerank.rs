//! PageRank in Grappa, as its published GraphLab engine has it (`applications/graphlab/graphlab_naive.hpp`).
//!
//! A vertex is on one core, with its edges. There are no copies of it: whoever has a new rank sends its change along each
//! edge to the core of the neighbour, in a message of its own that nobody waits for. Messages for a node fill a buffer,
//! which is what Grappa is made for.
//!
//! Changes up to the tolerance are not sent, and are lost, as in the published program.

use sim::system::ThreadId;
use wire::Nanos;

use super::Costs;
use crate::exchange::{self, Carriers, ExchangeConfig, Item, Port};
use crate::load::graph::{DAMPING, Neighbours, RandomGraph, Work};

/// Bytes of a buffer. Lists are flushed from 1 KiB on, and a buffer has room for 512 KiB; what this matters is little.
const BUFFER: u32 = 16 << 10;
/// The address of a function, that of a vertex, and a copy of the program of two words.
const ITEM: u32 = 32;

/// How Grappa's cores exchange what there is for vertices.
pub(crate) fn exchange(nodes: usize, threads: usize, costs: &Costs) -> ExchangeConfig {
    ExchangeConfig {
        nodes,
        threads,
        carriers: Carriers::Partners,
        buffer: BUFFER,
        item: ITEM,
        costs: exchange::Costs {
            put: costs.list,
            take: costs.list + costs.access,
            carry: costs.list,
            buffer: costs.mpi + costs.idle,
            kibibyte: Nanos::ZERO,
        },
    }
}

/// A core's vertices: those whose number is the core's, modulo the number of cores.
pub(crate) struct Part {
    cores: u32,
    neighbours: Neighbours,
    ranks: Vec<f64>,
    /// What came along the edges into each vertex, since the beginning.
    sums: Vec<f64>,
    active: Vec<bool>,
}

impl Part {
    /// The part of each of so many cores.
    pub(crate) fn all(graph: RandomGraph, cores: usize) -> Vec<Self> {
        let drawn: Vec<(u32, u32)> = graph.part(0, 1).collect();
        let (cores, mut mine) = (cores as u32, vec![Vec::new(); cores]);
        for (from, to) in drawn.into_iter().flat_map(|(from, to)| [(from, to), (to, from)]) {
            mine[(from % cores) as usize].push((from / cores, to));
        }
        let of = |(core, mine): (u32, Vec<(u32, u32)>)| {
            let vertices = (graph.vertices() as u32 - core).div_ceil(cores) as usize;
            let each = |show: &mut dyn FnMut(u32, u32)| mine.iter().for_each(|(from, to)| show(*from, *to));
            Self {
                cores,
                neighbours: Neighbours::new(vertices, each),
                ranks: vec![1.0; vertices],
                sums: vec![0.0; vertices],
                active: vec![true; vertices],
            }
        };
        (0..cores).zip(mine).map(of).collect()
    }

    /// A number for all neighbours of each of these vertices.
    fn along_edges(&self, of: &[(usize, f64)]) -> Vec<(ThreadId, Item)> {
        let to = |other: u32, value: f64| {
            (ThreadId((other % self.cores) as u16), Item { vertex: other, value: Some(value) })
        };
        of.iter()
            .flat_map(|(vertex, value)| self.neighbours.of(*vertex).iter().map(|other| to(*other, *value)))
            .collect()
    }

    fn degree(&self, vertex: usize) -> f64 {
        self.neighbours.of(vertex).len() as f64
    }

    fn add(&mut self, items: Vec<Item>) {
        for Item { vertex, value } in items {
            let at = (vertex / self.cores) as usize;
            self.sums[at] += value.unwrap_or(0.0);
            self.active[at] = true;
        }
    }

    /// Gives active vertices their new ranks. Which of them changed by more than the tolerance, and by how much for an edge.
    fn apply(&mut self, tolerance: f64) -> Vec<(usize, f64)> {
        let mut changed = Vec::new();
        for at in 0..self.ranks.len() {
            if !core::mem::take(&mut self.active[at]) {
                continue;
            }
            let new = (1.0 - DAMPING) + DAMPING * self.sums[at];
            let change = new - self.ranks[at];
            self.ranks[at] = new;
            if change.abs() > tolerance {
                changed.push((at, change / self.degree(at)));
            }
        }
        changed
    }

    /// Runs until no vertex is active, on all cores at once. Gives the number of supersteps, along
    /// how many edges this core has sent something, and the ranks.
    pub(crate) async fn pagerank(
        mut self,
        mut port: Port,
        work: Work,
        tolerance: f64,
    ) -> (u64, u64, Vec<f64>) {
        let all: Vec<_> = (0..self.ranks.len()).map(|at| (at, self.ranks[at] / self.degree(at))).collect();
        let items = self.along_edges(&all);
        let (mut supersteps, mut sent) = (0, items.len() as u64);
        let (_, items) = port.phase(work.of(items.len(), 0), items, 0).await;
        self.add(items);
        loop {
            let active = self.active.iter().filter(|active| **active).count();
            let (all_active, _) = port.phase(Nanos::ZERO, Vec::new(), active as u64).await;
            if all_active == 0 {
                return (supersteps, sent, self.ranks);
            }
            let changed = self.apply(tolerance);
            port.phase(work.of(0, active), Vec::new(), 0).await;
            let items = self.along_edges(&changed);
            sent += items.len() as u64;
            let (_, items) = port.phase(work.of(items.len(), 0), items, 0).await;
            self.add(items);
            supersteps += 1;
        }
    }
}
