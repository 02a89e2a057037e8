//! Graphs in a rack's memory, vertex by vertex: gather, apply, scatter (Concordia, section 7.5).
//!
//! Every thread of every node is a *worker*. It has as many vertices as any other one, at random ([`Partition`]), and
//! the edges into them. In a *superstep* each worker gathers what the edges bring to its vertices, applies that to
//! them, and scatters their new values: it writes them where all others read them in the next one.
//! [`Worker::pagerank`] and [`Worker::bfs`] are such programs.
//!
//! | file | holds |
//! | --- | --- |
//! | `partition.rs` | which worker has which vertex |
//! | `layout.rs` | what lies where; creating and opening a graph |
//! | `edges.rs` | the edges into a worker's vertices |
//! | `barrier.rs` | where workers wait for each other |
//! | `build.rs` | building: edges are read in parts and sent to those who keep them |
//! | `worker.rs` | a worker of a built graph; supersteps |
//! | `pagerank.rs`, `bfs.rs` | the kernels |
//! | `input/` | edge lists, and Graph500's generator |
//! | `reference.rs`, `verify.rs` | the same kernels in plain Rust, and whether results are right |
//!
//! # Budget
//! For N nodes, V vertices and E edges, with values of `b` bytes (8 for ranks, 1/8 for frontiers) in blocks of B:
//!
//! - Values are written once a superstep by one worker, and read by the threads of all nodes. Coherent memory fits
//!   that: the first thread of a node fetches a block, the others hit. Words and objects would be fetched by each
//!   thread; locks would carry data to those who wait, and nobody knows who will. So a superstep moves each block of
//!   values to `N - 1` nodes: `(N - 1) * V * b` bytes.
//! - To fetch a block, three messages reach nodes: the forwarded request, the data, and the switch's word that the
//!   event is over.
//! - To write it, `N - 1` copies are withdrawn: as many messages and as many answers, and one that the event is over. So
//!   `5 * N - 4` messages reach nodes for each block and superstep.
//! - Per edge that is `8 * (N - 1) * V / E` bytes of ranks. With LiveJournal's 8.7 edges a vertex: 2.8 bytes on 4
//!   nodes, and 0.0036 messages in blocks of 4 KiB, 0.0002 in blocks of 64 KiB, where a message for each edge would
//!   carry a header for every 8 bytes. A search's frontier takes a 64th of that.
//! - A worker waits for one block after the other, a round trip each: large blocks are right where a graph has the rack
//!   for itself.
//! - A barrier is two blocks that every worker changes or reads: about `10 * N` messages.
//! - Edges stay in their node: 4 bytes each, read in pieces of 64 KiB. They are hits while the node's cache has them all.
//!
//! # What must always hold
//! - Nobody reads what is written in the same superstep: results do not depend on who is quicker.
//! - All workers leave a superstep with the same number of active vertices, so all stop in the same one, also when
//!   asked to.
//!
//! # Not here
//! Vertices and edges do not change after building. A node that dies takes its part with it: workers of other nodes
//! that wait for it wait until their process is ended. Searches always look at all edges from segments with a part of
//! the frontier.
//!
//! # Example
//! ```
//! use apps::graph::{Builder, Control, Error, Graph, Partition, TOLERANCE};
//! use rackmem::Memory;
//!
//! /// Ranks of a path of three vertices, on a rack of one node.
//! async fn ranks<M: Memory>(mem: &mut M) -> Result<Vec<f64>, Error> {
//!     let graph = Graph::create(mem, Partition::new(3, 1, 1, 0)?).await?;
//!     let mut builder = Builder::new(&graph, 0, [(0, 1), (1, 2)].into_iter().map(Ok), false);
//!     while builder.round(mem).await? {}
//!     let mut worker = builder.finish(mem).await?;
//!     worker.pagerank(mem, TOLERANCE, &Control::default()).await?;
//!     Ok(graph.results(mem).await?.into_iter().map(f64::from_bits).collect())
//! }
//! # use rackmem::{Config, NodeId, Rack, block_on};
//! # let rack = Rack::embedded(Config { nodes: 1, ..Config::default() })?;
//! # let ranks = block_on(ranks(&mut rack.node(NodeId(0))))?;
//! # assert!(ranks[0] == 0.15 && ranks[2] > ranks[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod barrier;
mod bfs;
mod build;
mod edges;
mod error;
pub mod input;
mod layout;
mod pagerank;
mod partition;
pub mod reference;
pub mod verify;
mod worker;

pub use bfs::UNREACHED;
pub use build::Builder;
pub use error::Error;
pub use layout::Graph;
pub use pagerank::TOLERANCE;
pub use partition::Partition;
pub use worker::{Control, Outcome, Worker};
