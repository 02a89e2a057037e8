//! The synchronous engine, with PageRank as its program.
//!
//! What must always hold: a phase reads what phases before it have written, and nothing else, so that it does not matter
//! which thread of a node comes first.

use std::cell::RefCell;
use std::rc::Rc;

use sim::system::ThreadId;
use wire::Nanos;

use super::Costs;
use crate::exchange::{Item, Port};
use crate::load::graph::{DAMPING, Neighbours, Work};

/// So many vertices a thread takes at a time.
const BLOCK: usize = 64;

/// What a node has of a graph.
pub(crate) struct Node {
    number: usize,
    threads: usize,
    /// The vertices of its replicas, and which replica of them is a vertex's.
    vertices: Vec<u32>,
    local: Vec<u32>,
    neighbours: Neighbours,
    /// Of each replica: the node of its master, the nodes of its mirrors, edges of its vertex.
    known: Vec<(usize, u64, u32)>,
    /// The replicas of each thread.
    of_thread: Vec<Vec<usize>>,
    ranks: Vec<f64>,
    sums: Vec<f64>,
    /// A neighbour has changed.
    signalled: Vec<bool>,
    /// The master is active in this superstep.
    active: Vec<bool>,
    /// The replica takes part in the next gather or scatter.
    taking_part: Vec<bool>,
}

/// Items with the threads that they are for.
type Items = Vec<(ThreadId, Item)>;

impl Node {
    /// A node with these vertices and edges, all of them active.
    pub(super) fn new(
        number: usize,
        threads: usize,
        (vertices, local): (Vec<u32>, Vec<u32>),
        neighbours: Neighbours,
        known: Vec<(usize, u64, u32)>,
    ) -> Self {
        let count = vertices.len();
        // Threads take one block after the other: the next one goes to who has done the least.
        let (mut of_thread, mut done) = (vec![Vec::new(); threads], vec![0; threads]);
        for begin in (0..count).step_by(BLOCK) {
            let block = begin..(begin + BLOCK).min(count);
            let next = (0..threads).min_by_key(|thread| done[*thread]).expect("a node has threads");
            done[next] += block.clone().map(|at| 1 + neighbours.of(at).len()).sum::<usize>();
            of_thread[next].extend(block);
        }
        let signalled = known.iter().map(|(master, ..)| *master == number).collect();
        Self {
            number,
            threads,
            vertices,
            local,
            neighbours,
            known,
            of_thread,
            ranks: vec![1.0; count],
            sums: vec![0.0; count],
            signalled,
            active: vec![false; count],
            taking_part: vec![false; count],
        }
    }

    /// Ranks of the vertices whose master is here.
    pub(crate) fn results(&self) -> impl Iterator<Item = (u32, f64)> {
        let all = self.vertices.iter().zip(&self.ranks).zip(&self.known);
        all.filter(|(_, (master, ..))| *master == self.number).map(|((vertex, rank), _)| (*vertex, *rank))
    }

    /// Edges that are here, in both directions.
    #[cfg(test)]
    pub(super) fn edges(&self) -> usize {
        (0..self.vertices.len()).map(|at| self.neighbours.of(at).len()).sum()
    }

    /// Vertices that have a replica here.
    #[cfg(test)]
    pub(super) fn replicas(&self) -> impl Iterator<Item = u32> {
        self.vertices.iter().copied()
    }

    fn is_master(&self, at: usize) -> bool {
        self.known[at].0 == self.number
    }

    /// Something for a replica's vertex on another node. A thread sends to the thread of its own number there.
    fn item(&self, thread: usize, node: usize, at: usize, value: Option<f64>) -> (ThreadId, Item) {
        let to = ThreadId((node * self.threads + thread) as u16);
        (to, Item { vertex: self.vertices[at], value })
    }

    fn to_mirrors(&self, thread: usize, at: usize, value: Option<f64>, items: &mut Items) {
        let mirrors = self.known[at].1;
        items.extend(
            (0..64).filter(|node| mirrors >> node & 1 == 1).map(|node| self.item(thread, node, at, value)),
        );
    }

    /// Replicas of a thread of which this is true.
    fn those(&self, thread: usize, which: &[bool]) -> Vec<usize> {
        self.of_thread[thread].iter().copied().filter(|at| which[*at]).collect()
    }

    fn each(&mut self, items: Vec<Item>, mut change: impl FnMut(&mut Self, usize, Option<f64>)) {
        for Item { vertex, value } in items {
            let at = self.local[vertex as usize] as usize;
            change(self, at, value);
        }
    }

    /// Mirrors that were signalled tell their masters.
    fn exchange_signals(&mut self, thread: usize) -> Items {
        let mut items = Vec::new();
        for at in self.those(thread, &self.signalled) {
            if !self.is_master(at) {
                self.signalled[at] = false;
                items.push(self.item(thread, self.known[at].0, at, None));
            }
        }
        items
    }

    /// Masters that were signalled become active, and so do their mirrors.
    fn activate(&mut self, thread: usize) -> (Items, u64) {
        let (mut items, mut active) = (Vec::new(), 0);
        for at in self.those(thread, &self.signalled) {
            (self.signalled[at], self.active[at], self.taking_part[at]) = (false, true, true);
            self.to_mirrors(thread, at, None, &mut items);
            active += 1;
        }
        (items, active)
    }

    /// Adds up what comes along the edges that are here. Also gives how many those are.
    fn gather(&mut self, thread: usize) -> (Items, usize) {
        let (mut items, mut edges) = (Vec::new(), 0);
        for at in self.those(thread, &self.taking_part) {
            self.taking_part[at] = false;
            let neighbours = self.neighbours.of(at);
            let value = |other: &u32| self.ranks[*other as usize] / f64::from(self.known[*other as usize].2);
            let sum: f64 = neighbours.iter().map(value).sum();
            edges += neighbours.len();
            if self.is_master(at) {
                self.sums[at] += sum;
            } else if !neighbours.is_empty() {
                items.push(self.item(thread, self.known[at].0, at, Some(sum)));
            }
        }
        (items, edges)
    }

    /// Gives active masters their new ranks, and their mirrors; those that have changed take part in the scatter.
    fn apply(&mut self, thread: usize, tolerance: f64) -> (Items, usize) {
        let (mut items, active) = (Vec::new(), self.those(thread, &self.active));
        for at in &active {
            let at = *at;
            let new = (1.0 - DAMPING) + DAMPING * core::mem::take(&mut self.sums[at]);
            let changed = (new - self.ranks[at]).abs() > tolerance;
            (self.ranks[at], self.active[at], self.taking_part[at]) = (new, false, changed);
            self.to_mirrors(thread, at, Some(new), &mut items);
            if changed {
                self.to_mirrors(thread, at, None, &mut items);
            }
        }
        (items, active.len())
    }

    /// Signals the neighbours that are here. Gives over how many edges.
    fn scatter(&mut self, thread: usize) -> usize {
        let mut edges = 0;
        for at in self.those(thread, &self.taking_part) {
            self.taking_part[at] = false;
            let neighbours = self.neighbours.of(at);
            neighbours.iter().for_each(|other| self.signalled[*other as usize] = true);
            edges += neighbours.len();
        }
        edges
    }
}

/// Runs until no vertex is signalled, on all threads of all nodes at once. Gives the number of supersteps, and
/// over how many edges this thread has gathered.
pub(crate) async fn pagerank(
    node: Rc<RefCell<Node>>,
    (mut port, thread): (Port, usize),
    (work, costs): (Work, Costs),
    tolerance: f64,
) -> (u64, u64) {
    let over = |edges: usize| work.of(edges, 0) + Nanos(costs.edge.0 * edges as u64);
    let (mut supersteps, mut gathered) = (0, 0);
    loop {
        let items = node.borrow_mut().exchange_signals(thread);
        let (_, items) = port.phase(Nanos::ZERO, items, 0).await;
        node.borrow_mut().each(items, |node, at, _| node.signalled[at] = true);
        let (items, active) = node.borrow_mut().activate(thread);
        let (all_active, items) = port.phase(Nanos::ZERO, items, active).await;
        if all_active == 0 {
            return (supersteps, gathered);
        }
        node.borrow_mut().each(items, |node, at, _| node.taking_part[at] = true);
        let (items, edges) = node.borrow_mut().gather(thread);
        gathered += edges as u64;
        let (_, items) = port.phase(over(edges), items, 0).await;
        node.borrow_mut().each(items, |node, at, value| node.sums[at] += value.unwrap_or(0.0));
        let (items, vertices) = node.borrow_mut().apply(thread, tolerance);
        let (_, items) = port.phase(work.of(0, vertices), items, 0).await;
        node.borrow_mut().each(items, |node, at, value| match value {
            Some(value) => node.ranks[at] = value,
            None => node.taking_part[at] = true,
        });
        let edges = node.borrow_mut().scatter(thread);
        port.phase(over(edges), Vec::new(), 0).await;
        supersteps += 1;
    }
}
