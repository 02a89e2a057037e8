//! PowerGraph (Gonzalez et al., OSDI '12), the graph engine that Concordia's is compared with: its synchronous engine, in
//! the form of its published source (`synchronous_engine.hpp`, `fiber_buffered_exchange.hpp`).
//!
//! Edges are divided among the nodes, not vertices (`cut.rs`). A vertex has a *replica* on each node that has one of its
//! edges; one is its *master*, the others are *mirrors*. A superstep is five phases (`engine.rs`), and what a vertex needs
//! of others passes between master and mirrors only:
//!
//! ```text
//!   mirror ── signal ──> master ── becomes active ──> mirror ── its part of the sum ──> master
//!   master ── new value, and whether to scatter ──> mirror: signals the neighbours
//! ```
//!
//! Only vertices that a neighbour has signalled are active. Items wait in buffers of 63000 B for each thread and each node,
//! which background threads write to TCP.
//!
//! What must always hold: of the two directions of an edge both are on one node.

mod cut;
mod engine;

use wire::Nanos;

use crate::exchange::{self, Carriers, ExchangeConfig};
pub(crate) use cut::cut;
pub(crate) use engine::pagerank;

/// Processor times of PowerGraph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// What the engine adds to the work on an edge, when it gathers and when it scatters. On one node PageRank takes
    /// GraphLab 3.6 times as long as native code (Satish et al., SIGMOD '14; unverified): 26 ns more than 10.
    pub edge: Nanos,
    /// An item is copied into a buffer. Estimated.
    pub put: Nanos,
    /// An item is copied out of a buffer, its vertex is found in a hash table, which misses to memory, and locked.
    /// Estimated: 90 ns, 40 ns for two atomic instructions, 20 ns.
    pub take: Nanos,
    /// A buffer is sent, or received, by TCP: a system call, an interrupt, a wake-up. Estimated: over IPoIB a small
    /// message takes 10 to 15 us one way.
    pub buffer: Nanos,
    /// And a KiB of it: a core copies and processes some 20 Gb/s. Estimated.
    pub kibibyte: Nanos,
}

impl Costs {
    /// What each field says.
    pub const PUBLISHED: Self = Self {
        edge: Nanos(26),
        put: Nanos(20),
        take: Nanos(150),
        buffer: Nanos(5_000),
        kibibyte: Nanos(400),
    };
}

/// How PowerGraph's threads exchange what there is for vertices.
pub(crate) fn exchange(nodes: usize, threads: usize, costs: &Costs) -> ExchangeConfig {
    let Costs { put, take, buffer, kibibyte, .. } = *costs;
    ExchangeConfig {
        nodes,
        threads,
        carriers: Carriers::Threads,
        buffer: 63_000,
        // A vertex's number and a double.
        item: 12,
        costs: exchange::Costs { put, take, carry: Nanos::ZERO, buffer, kibibyte },
    }
}
