//! How long everything takes: the paper's machine (RAE, Table I).
//!
//! ```text
//!   core ── L1 ── L2 ── memory ──┐
//!     └── packetizer ── mesh ── packetizer ── engine, its core, its cache of lines
//! ```
//!
//! | file | what |
//! | --- | --- |
//! | `chip` | all constants, with their sources |
//! | `cache` | which lines a cache has |
//! | `hierarchy` | L1, L2 and the memory of a node |
//! | `mesh` | what packets take between nodes |
//!
//! What is not modelled: instruction fetches (they hit), links of the mesh that several packets want (the ports at both ends are
//! taken), rows of the memory's banks, virtual memory.

mod cache;
mod chip;
mod hierarchy;
mod mesh;

pub use chip::Chip;
pub use hierarchy::Accesses;
pub(crate) use hierarchy::Hierarchy;
pub(crate) use mesh::{Ports, barrier, bytes_of_answer, bytes_of_request, hops};
