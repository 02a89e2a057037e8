//! The same kernels in plain Rust on one thread: what results are judged by, and times compared with.
//!
//! What must always hold: nothing here uses the rack, its partition or its order.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::Error;
use super::input::{Edge, Input, InputError};
use super::pagerank::RESET;

/// A graph in the memory of this process: for each vertex the others of its edges.
#[derive(Debug)]
pub struct PlainGraph {
    /// Where those of each vertex begin; one more says where the last ones end.
    begins: Vec<u64>,
    others: Vec<u32>,
    /// Edges out of each vertex.
    degrees: Vec<u32>,
}

/// By which of its vertices an edge is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Where it comes from.
    Source,
    /// Where it leads to.
    Target,
}

/// Ranks, and how often all were computed.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranks {
    /// By vertex.
    pub ranks: Vec<f64>,
    /// Supersteps.
    pub supersteps: u64,
}

impl PlainGraph {
    /// Reads all edges, twice; counts them as it does.
    ///
    /// # Errors
    /// [`Error::Input`], and [`Error::NoSuchVertex`] if a file has changed.
    pub fn new(input: &Input, by: Side, read: &AtomicU64) -> Result<Self, Error> {
        let vertices = input.vertices() as usize;
        let mut degrees = vec![0; vertices];
        let mut begins = vec![0_u64; vertices + 1];
        for edge in edges(input, read)? {
            let (from, to) = edge?;
            if let Some(vertex) = [from, to].into_iter().find(|vertex| *vertex as usize >= vertices) {
                return Err(Error::NoSuchVertex { vertex: vertex.into(), vertices: vertices as u64 });
            }
            degrees[from as usize] += 1;
            let at = if by == Side::Source { from } else { to };
            begins[at as usize + 1] += 1;
        }
        (1..=vertices).for_each(|at| begins[at] += begins[at - 1]);
        let (mut next, mut others) = (begins.clone(), vec![0; begins[vertices] as usize]);
        for edge in edges(input, read)? {
            let (from, to) = edge?;
            let (at, other) = if by == Side::Source { (from, to) } else { (to, from) };
            let Some(next) = next.get_mut(at as usize).filter(|next| (**next as usize) < others.len()) else {
                return Err(Error::NoSuchVertex { vertex: at.into(), vertices: vertices as u64 });
            };
            others[*next as usize] = other;
            *next += 1;
        }
        let mut this = Self { begins, others, degrees };
        if by == Side::Source {
            // For `has`.
            (0..vertices).for_each(|vertex| {
                let range = this.range(vertex);
                this.others[range].sort_unstable();
            });
        }
        Ok(this)
    }

    fn range(&self, vertex: usize) -> std::ops::Range<usize> {
        self.begins[vertex] as usize..self.begins[vertex + 1] as usize
    }

    fn others(&self, vertex: usize) -> &[u32] {
        &self.others[self.range(vertex)]
    }

    /// How many vertices there are.
    pub fn vertices(&self) -> usize {
        self.degrees.len()
    }

    /// Edges out of a vertex.
    pub fn degree(&self, vertex: u32) -> u32 {
        self.degrees[vertex as usize]
    }

    /// True if an edge leads from one to the other. Needs [`Side::Source`].
    pub fn has(&self, from: u32, to: u32) -> bool {
        self.others(from as usize).binary_search(&to).is_ok()
    }

    /// Ranks, until none changes by more than the tolerance. Needs [`Side::Target`].
    pub fn pagerank(&self, tolerance: f64) -> Ranks {
        let mut ranks = vec![1.0; self.vertices()];
        let mut values = vec![0.0; self.vertices()];
        let mut supersteps = 0;
        loop {
            for ((value, rank), degree) in values.iter_mut().zip(&ranks).zip(&self.degrees) {
                *value = rank / f64::from(*degree);
            }
            let mut active = 0_u64;
            for (vertex, rank) in ranks.iter_mut().enumerate() {
                let sum: f64 = self.others(vertex).iter().map(|other| values[*other as usize]).sum();
                let new = RESET + (1.0 - RESET) * sum;
                active += u64::from((new - *rank).abs() > tolerance);
                *rank = new;
            }
            supersteps += 1;
            if active == 0 {
                return Ranks { ranks, supersteps };
            }
        }
    }

    /// How many edges away from a vertex each is; none if no way leads there. Needs [`Side::Source`].
    pub fn depths(&self, source: u32) -> Vec<Option<u32>> {
        let mut depths = vec![None; self.vertices()];
        depths[source as usize] = Some(0);
        let (mut queue, mut at) = (vec![source], 0);
        while let Some(&vertex) = queue.get(at) {
            at += 1;
            let next = depths[vertex as usize].map(|depth| depth + 1);
            for &other in self.others(vertex as usize) {
                if depths[other as usize].is_none() {
                    depths[other as usize] = next;
                    queue.push(other);
                }
            }
        }
        depths
    }
}

/// All edges as they are stored.
fn edges<'a>(input: &Input, read: &'a AtomicU64) -> Result<impl Iterator<Item = Edge> + use<'a>, InputError> {
    let undirected = input.undirected();
    Ok(input.part(0, 1)?.flat_map(move |edge| {
        read.fetch_add(1, Ordering::Relaxed);
        let back = match &edge {
            Ok((from, to)) if undirected => Some(Ok((*to, *from))),
            _ => None,
        };
        [edge].into_iter().chain(back)
    }))
}
