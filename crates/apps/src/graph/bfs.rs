//! Breadth-first search: for each vertex the one from which it was reached first.
//!
//! The values are the *frontier*, a bit for each vertex that was reached in the superstep before. Each vertex that
//! was not reached looks for an edge from the frontier, so a superstep looks at all edges from segments that have a
//! bit of it. (On graphs of small diameter that is what a search that changes its direction does in all its large
//! supersteps; where there are thousands of supersteps, as on roads, another algorithm is the right one.)

use rackmem::Memory;

use super::edges::Code;
use super::error::Error;
use super::partition::SEGMENT;
use super::worker::{Control, Kernel, Outcome, Worker};

/// The parent of a vertex that was not reached.
pub const UNREACHED: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

struct Search {
    /// The slot from which a search begins.
    source: u32,
    /// Slots from which others were reached.
    parents: Vec<u32>,
    /// A segment of the frontier, and this worker's part of the next one.
    read: Vec<u8>,
    next: Vec<u8>,
}

impl Worker {
    /// Finds all vertices that edges lead to from this one; all workers call it. [`super::Graph::results`] are the
    /// vertices from which they were reached, or [`UNREACHED`]; the source's is itself.
    ///
    /// # Errors
    /// [`Error::NoSuchVertex`], [`Error::Memory`], and [`Error::Abandoned`] if another worker has failed.
    pub async fn bfs<M: Memory>(
        &mut self,
        mem: &mut M,
        source: u32,
        control: &Control,
    ) -> Result<Outcome, Error> {
        let partition = self.graph.partition();
        if u64::from(source) >= partition.vertices() {
            return Err(Error::NoSuchVertex { vertex: source.into(), vertices: partition.vertices() });
        }
        let mut kernel = Search {
            source: partition.slot_of(source),
            parents: vec![NONE; self.degrees.len()],
            read: vec![0; SEGMENT as usize / 8],
            next: vec![0; self.degrees.len() / 8],
        };
        self.supersteps(mem, &mut kernel, control).await
    }
}

#[inline]
fn bit(bits: &[u8], at: usize) -> bool {
    bits[at / 8] >> (at % 8) & 1 == 1
}

fn set(bits: &mut [u8], at: usize) {
    bits[at / 8] |= 1 << (at % 8);
}

impl Kernel for Search {
    async fn begin<M: Memory>(&mut self, worker: &mut Worker, mem: &mut M) -> Result<(), Error> {
        if worker.graph.partition().worker_of(self.source) == worker.number {
            let at = self.source as usize - worker.number * self.parents.len();
            self.parents[at] = self.source;
            set(&mut self.next, at);
        }
        worker.write_values(mem, 0, &self.next).await
    }

    async fn superstep<M: Memory>(
        &mut self,
        worker: &mut Worker,
        mem: &mut M,
        number: usize,
    ) -> Result<u64, Error> {
        self.next.fill(0);
        let (partition, mut reached) = (*worker.graph.partition(), 0);
        for segment in 0..partition.segments() {
            if worker.edges.none_from(segment) {
                continue;
            }
            let (node, first, len) = partition.segment(segment);
            let frontier = &mut self.read[..len / 8];
            worker.read_values(mem, (number, node), first / 8, frontier).await?;
            if frontier.iter().all(|bits| *bits == 0) {
                continue;
            }
            let first = node as u64 * partition.slots_of_node() + first;
            let (frontier, parents, next) = (&*frontier, &mut self.parents, &mut self.next);
            let gather = |codes: &[[u8; 4]], mut row| {
                for code in codes.iter().copied().map(Code::new) {
                    row += code.forward();
                    if code.is_edge() && parents[row] == NONE && bit(frontier, code.source()) {
                        parents[row] = (first + code.source() as u64) as u32;
                        set(next, row);
                        reached += 1;
                    }
                }
                row
            };
            worker.edges.each(mem, segment, gather).await?;
        }
        worker.write_values(mem, number + 1, &self.next).await?;
        Ok(reached)
    }

    fn result(&self, worker: &Worker) -> Vec<u8> {
        let partition = worker.graph.partition();
        let vertex = |slot: &u32| partition.vertex_of(*slot).map_or(UNREACHED, u64::from);
        let of = |slot: &u32| if *slot == NONE { UNREACHED } else { vertex(slot) };
        self.parents.iter().flat_map(|slot| of(slot).to_le_bytes()).collect()
    }
}
