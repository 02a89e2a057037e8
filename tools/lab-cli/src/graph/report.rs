//! What comes out: medians of the rounds, and what was verified.

use serde::Serialize;

use super::args::Kernel;
use super::node::{Judged, Ran};
use crate::bench::nodes::Counted;
use crate::bench::rounds::median;
use cli::processes::TransportKind;
use cli::size::Bytes;

/// One round.
#[derive(Clone, Serialize)]
pub(super) struct Round {
    /// Where a search began.
    source: Option<u32>,
    supersteps: u64,
    seconds: f64,
    /// Edges that were looked at in all supersteps, or that a search has found.
    edges: u64,
    edges_per_second: f64,
    /// Of all threads' time.
    wait_percent: f64,
    messages_per_edge: f64,
    /// None where messages have no bytes.
    bytes_per_edge: Option<f64>,
    plain_seconds: f64,
    /// The rack's speed, as a part of plain Rust's.
    ratio: f64,
}

impl Round {
    pub(super) fn of(
        (kernel, source): (Kernel, u32),
        ran: &Ran,
        judged: &Judged,
        counted: Counted,
        transport: TransportKind,
    ) -> Self {
        let edges = match kernel {
            Kernel::Pagerank => judged.edges * ran.supersteps,
            Kernel::Bfs => judged.edges,
        };
        let (seconds, plain_seconds) = (ran.nanos as f64 / 1e9, judged.plain_nanos as f64 / 1e9);
        let per_edge = |count: u64| count as f64 / edges as f64;
        Self {
            source: (kernel == Kernel::Bfs).then_some(source),
            supersteps: ran.supersteps,
            seconds,
            edges,
            edges_per_second: edges as f64 / seconds,
            wait_percent: 100.0 * ran.waited_nanos as f64 / ran.all_nanos as f64,
            messages_per_edge: per_edge(counted.messages),
            bytes_per_edge: (transport != TransportKind::Inline).then(|| per_edge(counted.bytes)),
            plain_seconds,
            ratio: plain_seconds / seconds,
        }
    }
}

/// All of it.
#[derive(Serialize)]
pub(super) struct GraphReport {
    pub(super) kernel: Kernel,
    pub(super) vertices: u64,
    /// As they are stored: those without a direction twice.
    pub(super) stored_edges: u64,
    pub(super) nodes: u16,
    pub(super) threads: u16,
    pub(super) transport: TransportKind,
    pub(super) block_bytes: u64,
    pub(super) build_seconds: f64,
    pub(super) build_edges_per_second: f64,
    /// Every round's result was right.
    pub(super) verified: bool,
    pub(super) rounds: Vec<Round>,
}

impl GraphReport {
    pub(super) fn text(&self) -> String {
        let Self { vertices, stored_edges, nodes, threads, .. } = self;
        let of = |pick: fn(&Round) -> f64| median(self.rounds.iter().map(pick).collect());
        let bytes = match self.rounds[0].bytes_per_edge {
            Some(_) => {
                let bytes = of(|round| round.bytes_per_edge.unwrap_or_default());
                format!(
                    "{bytes:.3} bytes and {:.5} messages reach nodes",
                    of(|round| round.messages_per_edge)
                )
            }
            None => format!("the switch's program sends {:.5} messages", of(|round| round.messages_per_edge)),
        };
        let (kernel, judged) = match self.kernel {
            Kernel::Pagerank => ("PageRank", "ranks are those of a sequential kernel, to 1e-9 of each"),
            Kernel::Bfs => (
                "Breadth-first search",
                "parents are right as GAP verifies them, by depths of a sequential search",
            ),
        };
        let plural = |count: u16, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        format!(
            "{kernel} on {vertices} vertices and {stored_edges} stored edges: {} of {} over {}, blocks of {} (medians of {} rounds)\n\n\
             built in       {:.2} s, {:.2} M edges/s\n\
             took           {:.1} ms, {} supersteps, {:.1} M edges/s\n\
             plain Rust     {:.1} ms on one thread: the rack is {:.2}x as fast\n\
             waiting        {:.1} % of the threads' time\n\
             per edge       {bytes}\n\
             verified       {judged}\n",
            plural(*nodes, "node"),
            plural(*threads, "thread"),
            self.transport.name(),
            Bytes(self.block_bytes),
            self.rounds.len(),
            self.build_seconds,
            self.build_edges_per_second / 1e6,
            of(|round| round.seconds) * 1e3,
            of(|round| round.supersteps as f64),
            of(|round| round.edges_per_second) / 1e6,
            of(|round| round.plain_seconds) * 1e3,
            of(|round| round.ratio),
            of(|round| round.wait_percent),
        )
    }
}
