//! Whether results are right.
//!
//! Ranks are compared with those of the sequential kernel, which computes by the same rule and adds up in another
//! order. Parents are checked as the GAP benchmark's specification says: the source is its own parent; every other
//! one that has a parent is one edge and one step away from it; and those without are those that no way leads to.

use std::fmt;

use super::bfs::UNREACHED;
use super::reference::{PlainGraph, Ranks};

/// By how much a rank may differ, as a part of it: sums of the same numbers in another order.
pub const RANK_TOLERANCE: f64 = 1e-9;

/// What is wrong with a result.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Mistake {
    /// There are not as many numbers as vertices.
    Count {
        /// So many.
        found: usize,
        /// And so many vertices.
        vertices: usize,
    },
    /// Another number of supersteps.
    Supersteps {
        /// So many.
        found: u64,
        /// The sequential kernel's.
        expected: u64,
    },
    /// A rank differs by more than [`RANK_TOLERANCE`].
    Rank {
        /// Whose.
        vertex: u32,
        /// What it is.
        found: f64,
        /// The sequential kernel's.
        expected: f64,
    },
    /// The source is not its own parent.
    Source {
        /// What is.
        parent: u64,
    },
    /// Reached, but no way leads there; or the other way round.
    Reached {
        /// The vertex.
        vertex: u32,
        /// It has a parent.
        found: bool,
    },
    /// No edge leads from the parent.
    NoEdge {
        /// The parent.
        parent: u64,
        /// The vertex.
        vertex: u32,
    },
    /// The parent is not one step nearer to the source.
    Depth {
        /// The parent.
        parent: u64,
        /// The vertex.
        vertex: u32,
    },
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { found, vertices } => write!(f, "{found} results for {vertices} vertices"),
            Self::Supersteps { found, expected } => {
                write!(f, "{found} supersteps, and {expected} of the sequential kernel")
            }
            Self::Rank { vertex, found, expected } => {
                write!(f, "vertex {vertex} has rank {found}, and {expected} by the sequential kernel")
            }
            Self::Source { parent } => write!(f, "the source's parent is {parent}, not itself"),
            Self::Reached { vertex, found: true } => {
                write!(f, "vertex {vertex} has a parent, but no way leads to it")
            }
            Self::Reached { vertex, found: false } => {
                write!(f, "vertex {vertex} has no parent, but a way leads to it")
            }
            Self::NoEdge { parent, vertex } => {
                write!(f, "vertex {vertex} has parent {parent}, but no edge leads from there")
            }
            Self::Depth { parent, vertex } => {
                write!(f, "vertex {vertex} has parent {parent}, which is not one step nearer to the source")
            }
        }
    }
}

impl std::error::Error for Mistake {}

/// Whether ranks, as bits of `f64`, are those of the sequential kernel.
///
/// # Errors
/// What is wrong first.
pub fn ranks(found: &[u64], supersteps: u64, reference: &Ranks) -> Result<(), Mistake> {
    let vertices = reference.ranks.len();
    if found.len() != vertices {
        return Err(Mistake::Count { found: found.len(), vertices });
    }
    if supersteps != reference.supersteps {
        return Err(Mistake::Supersteps { found: supersteps, expected: reference.supersteps });
    }
    for (vertex, (found, expected)) in (0..).zip(found.iter().zip(&reference.ranks)) {
        let found = f64::from_bits(*found);
        // Also if it is no number.
        let near = (found - expected).abs() <= RANK_TOLERANCE * expected;
        if !near {
            return Err(Mistake::Rank { vertex, found, expected: *expected });
        }
    }
    Ok(())
}

/// Whether these are parents of a search from this vertex, whose depths the sequential kernel has found. Gives the
/// number of edges out of those that were reached.
///
/// # Errors
/// What is wrong first.
pub fn parents(
    found: &[u64],
    source: u32,
    graph: &PlainGraph,
    depths: &[Option<u32>],
) -> Result<u64, Mistake> {
    if found.len() != depths.len() {
        return Err(Mistake::Count { found: found.len(), vertices: depths.len() });
    }
    if found[source as usize] != u64::from(source) {
        return Err(Mistake::Source { parent: found[source as usize] });
    }
    let mut edges = 0;
    for (vertex, (&parent, depth)) in (0..).zip(found.iter().zip(depths)) {
        let reached = parent != UNREACHED;
        if reached != depth.is_some() {
            return Err(Mistake::Reached { vertex, found: reached });
        }
        if !reached {
            continue;
        }
        edges += u64::from(graph.degree(vertex));
        if vertex == source {
            continue;
        }
        let Some(near) = depths.get(parent as usize) else {
            return Err(Mistake::NoEdge { parent, vertex });
        };
        if !graph.has(parent as u32, vertex) {
            return Err(Mistake::NoEdge { parent, vertex });
        }
        if near.map(|near| near + 1) != *depth {
            return Err(Mistake::Depth { parent, vertex });
        }
    }
    Ok(edges)
}
