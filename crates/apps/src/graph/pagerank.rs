//! PageRank: `rank(v) = 0.15 + 0.85 * sum of rank(u) / degree(u)` over the edges from `u` to `v`, from 1 on.
//!
//! Ranks are not scaled to a sum of 1, and what vertices without edges out of them have is lost, as in PowerGraph's
//! toolkit; so is its stopping rule: a vertex is active while its rank changes by more than a tolerance, 0.01 by
//! default, and when none is, the ranks have converged. One thing differs: PowerGraph does not look at a vertex if
//! none was active from which an edge leads to it. Here all gather in every superstep, so every rank is as new as the
//! others, and how many threads there are changes sums only in their last bits.
//!
//! A value is `rank / degree`, in 8 bytes: a gather adds it as it is.

use rackmem::Memory;

use super::edges::Code;
use super::error::Error;
use super::partition::SEGMENT;
use super::worker::{Control, Kernel, Outcome, Worker};

/// What a vertex has without any edge.
pub(super) const RESET: f64 = 0.15;
/// By how much a rank changes while its vertex is active, by PowerGraph's default.
pub const TOLERANCE: f64 = 0.01;

struct PageRank {
    tolerance: f64,
    ranks: Vec<f64>,
    sums: Vec<f64>,
    /// Values of a segment.
    read: Vec<u8>,
}

impl Worker {
    /// Computes ranks until none changes by more than the tolerance; all workers call it. [`super::Graph::results`]
    /// are the ranks, as bits of `f64`.
    ///
    /// # Errors
    /// [`Error::Memory`], and [`Error::Abandoned`] if another worker has failed.
    pub async fn pagerank<M: Memory>(
        &mut self,
        mem: &mut M,
        tolerance: f64,
        control: &Control,
    ) -> Result<Outcome, Error> {
        let slots = self.degrees.len();
        let mut kernel = PageRank {
            tolerance,
            // What is no vertex does not change.
            ranks: (0..slots).map(|at| if self.is_vertex(at) { 1.0 } else { RESET }).collect(),
            sums: vec![0.0; slots],
            read: vec![0; 8 * SEGMENT as usize],
        };
        self.supersteps(mem, &mut kernel, control).await
    }
}

impl PageRank {
    /// Values of all slots, in bytes. Nobody reads that of a vertex without edges out of it.
    fn values(&self, worker: &Worker) -> Vec<u8> {
        let of = |(rank, degree): (&f64, &u32)| (rank / f64::from(*degree)).to_le_bytes();
        self.ranks.iter().zip(&worker.degrees).flat_map(of).collect()
    }
}

/// Adds values to the sums of their rows, from this row on; gives the last one.
fn gather(codes: &[[u8; 4]], mut row: usize, values: &[[u8; 8]], sums: &mut [f64]) -> usize {
    // A row's sum stays in a register: through memory, each addition would wait for the one before twice as long.
    let mut sum = 0.0;
    for code in codes.iter().copied().map(Code::new) {
        if code.forward() > 0 {
            sums[row] += sum;
            sum = 0.0;
            row += code.forward();
            if !code.is_edge() {
                continue;
            }
        }
        sum += f64::from_le_bytes(values[code.source()]);
    }
    sums[row] += sum;
    row
}

impl Kernel for PageRank {
    async fn begin<M: Memory>(&mut self, worker: &mut Worker, mem: &mut M) -> Result<(), Error> {
        worker.write_values(mem, 0, &self.values(worker)).await
    }

    async fn superstep<M: Memory>(
        &mut self,
        worker: &mut Worker,
        mem: &mut M,
        number: usize,
    ) -> Result<u64, Error> {
        self.sums.fill(0.0);
        let partition = *worker.graph.partition();
        for segment in 0..partition.segments() {
            if worker.edges.none_from(segment) {
                continue;
            }
            let (node, first, len) = partition.segment(segment);
            let values = &mut self.read[..8 * len];
            worker.read_values(mem, (number, node), 8 * first, values).await?;
            let (values, sums) = (values.as_chunks().0, &mut self.sums);
            worker.edges.each(mem, segment, |codes, row| gather(codes, row, values, sums)).await?;
        }
        let mut active = 0;
        for (rank, sum) in self.ranks.iter_mut().zip(&self.sums) {
            let new = RESET + (1.0 - RESET) * sum;
            active += u64::from((new - *rank).abs() > self.tolerance);
            *rank = new;
        }
        worker.write_values(mem, number + 1, &self.values(worker)).await?;
        Ok(active)
    }

    fn result(&self, _: &Worker) -> Vec<u8> {
        self.ranks.iter().flat_map(|rank| rank.to_le_bytes()).collect()
    }
}
