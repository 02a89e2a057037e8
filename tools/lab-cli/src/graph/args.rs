//! Flags, what they ask for, and whether the rack and the machine have the memory for it.

use std::path::PathBuf;
use std::time::Instant;

use apps::graph::input::{EdgeList, Input, Kronecker};
use apps::graph::{Error, Graph, Partition, TOLERANCE};
use clap::ValueEnum;
use rackmem::BlockSize;
use serde::{Deserialize, Serialize};

use crate::bench::nodes::{available, spec};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;
use cli::ycsb::block_size;
use cli::ycsb::progress::Progress;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An edge list: a line for each edge, two vertices on it, comments after #. Without it a Kronecker graph is
    /// generated
    file: Option<PathBuf>,

    /// What to compute
    #[arg(long, value_enum, default_value = "pagerank")]
    pub(super) kernel: Kernel,

    /// Nodes of the rack
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) nodes: u16,

    /// Threads of each node
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) threads: u16,

    /// What is between the nodes
    #[arg(long, value_enum, default_value = "inline")]
    pub(super) transport: TransportKind,

    /// Generate 2^SCALE vertices
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=31), conflicts_with = "file")]
    scale: u32,

    /// Generate so many edges for each vertex, each stored in both directions
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1 << 20), conflicts_with = "file")]
    edge_factor: u64,

    /// Store each edge of the file in both directions
    #[arg(long, requires = "file")]
    undirected: bool,

    /// PageRank: a vertex is active while its rank changes by more
    #[arg(long, default_value_t = TOLERANCE)]
    pub(super) tolerance: f64,

    /// Search from this vertex; otherwise from one with edges, drawn anew for each round
    #[arg(long)]
    pub(super) source: Option<u32>,

    /// The unit of coherence: values of so many bytes are fetched at once
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = block_size)]
    pub(super) block_size: BlockSize,

    /// Bytes of each node's memory; what the graph needs by default
    #[arg(long)]
    memory: Option<Bytes>,

    /// Fixes the generated graph, how vertices are divided, and the sources
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,

    /// Rounds, in each of which rack and plain Rust take turns; the medians are printed
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) rounds: u64,

    /// Run nothing here: draw a superstep of PageRank on a simulated rack with the papers' timing, as an SVG
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "transport", "memory", "tolerance", "rounds", "json"])]
    pub(super) timeline: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

/// What is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kernel {
    /// Ranks, until none changes by more than a tolerance
    Pagerank,
    /// Breadth-first search: a parent for each vertex
    Bfs,
}

/// What nodes are told of the edges.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Edges {
    Generated { scale: u32, edge_factor: u64, seed: u64 },
    Listed { path: String, edges: u64, vertices: u64, undirected: bool },
}

impl Edges {
    pub(super) fn input(&self) -> Input {
        match self {
            Self::Generated { scale, edge_factor, seed } => {
                Input::Kronecker(Kronecker { scale: *scale, edge_factor: *edge_factor, seed: *seed })
            }
            Self::Listed { path, edges, vertices, undirected } => {
                let list = EdgeList::known(path.as_ref(), *edges, *vertices);
                Input::List { list, undirected: *undirected }
            }
        }
    }
}

impl Args {
    /// What is wrong with flags by themselves.
    pub(super) fn check(&self) -> Result<(), Fault> {
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            return Err(Fault::usage(format_args!(
                "--tolerance {}: name a number from 0 on",
                self.tolerance
            )));
        }
        if self.kernel == Kernel::Pagerank && self.source.is_some() {
            return Err(Fault::usage("--source is where a search begins: it needs --kernel bfs"));
        }
        Ok(())
    }

    /// What edges there are. Looks at the whole of a file: whatever is wrong there is said before a rack is started.
    pub(super) fn edges(&self, interrupt: &Interrupt) -> Result<Edges, Fault> {
        let Some(path) = &self.file else {
            let Self { scale, edge_factor, seed, .. } = *self;
            return Ok(Edges::Generated { scale, edge_factor, seed });
        };
        let name = path.to_str().ok_or_else(|| {
            Fault::usage(format_args!("{}: the name is not UTF-8: rename the file", path.display()))
        })?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (began, mut progress, mut bytes) = (Instant::now(), None, 0);
        let show = |done, all| {
            bytes = all;
            progress.get_or_insert_with(|| Progress::start("bytes looked at".to_owned(), all)).show(done);
        };
        let list = EdgeList::scan(path, threads, interrupt.flag(), show).map_err(Fault::usage)?;
        let list = list.ok_or(Fault::Interrupted)?;
        if let Some(progress) = progress {
            progress.finish(bytes, began.elapsed());
        }
        let path = name.to_owned();
        Ok(Edges::Listed { path, edges: list.edges, vertices: list.vertices, undirected: self.undirected })
    }

    /// How vertices are divided.
    pub(super) fn partition(&self, input: &Input) -> Result<Partition, Fault> {
        let (nodes, threads) = (usize::from(self.nodes), usize::from(self.threads));
        let partition = Partition::new(input.vertices(), nodes, threads, self.seed).map_err(Fault::usage)?;
        if let Some(source) = self.source.filter(|source| u64::from(*source) >= input.vertices()) {
            let error = Error::NoSuchVertex { vertex: source.into(), vertices: input.vertices() };
            return Err(Fault::usage(format_args!("--source {source}: {error}")));
        }
        Ok(partition)
    }

    /// The rack for a graph. Says what is missing if there is too little memory.
    pub(super) fn rack(&self, input: &Input, partition: &Partition) -> Result<RackSpec, Fault> {
        let block = self.block_size;
        let needed = Graph::bytes_needed(partition, input.stored(), block);
        let memory = self.memory.map_or(needed, |bytes| bytes.0);
        let of = format!("{} vertices and {} stored edges", input.vertices(), input.stored());
        if memory < needed {
            return Err(Fault::usage(format_args!(
                "--memory {} is too little: {of} need {} on each of {} nodes; leave out --memory, or take more nodes",
                Bytes(memory),
                Bytes(needed),
                self.nodes
            )));
        }
        // The node's own edges and words, and the values of all others.
        let cache = needed + 16 * input.vertices();
        let cache = cache.next_multiple_of(1 << 20);
        // Memory is taken as it is used: what building sorts, and the plain graph beside the rack.
        let stored = input.stored();
        let all = u64::from(self.nodes) * (needed + cache) + 8 * stored + 4 * stored + 28 * input.vertices();
        if let Some(free) = available().filter(|free| *free < all) {
            return Err(Fault::usage(format_args!(
                "this machine has {} of memory free, and {of} need {} on {} nodes with their caches; name a smaller graph, or fewer nodes",
                Bytes(free),
                Bytes(all),
                self.nodes
            )));
        }
        let spec = RackSpec { nodes: self.nodes.into(), memory, cache, seed: self.seed, ..spec(block) };
        spec.check().map_err(Fault::usage)?;
        Ok(spec)
    }
}
