//! One worker with its part of a built graph, and what all kernels share: supersteps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rackmem::{Memory, Nanos};

use super::barrier::Barrier;
use super::edges::Edges;
use super::error::Error;
use super::layout::{Graph, PIECE};

/// A worker that brings this to a barrier was asked to stop. More than any number of vertices; 2^15 of them fit into
/// a word.
const STOP: u64 = 1 << 48;

/// A thread's part of a graph. All threads run the same kernels in the same order.
#[derive(Debug)]
pub struct Worker {
    pub(super) graph: Graph,
    pub(super) number: usize,
    barrier: Barrier,
    pub(super) edges: Edges,
    /// Edges out of each of its vertices.
    pub(super) degrees: Vec<u32>,
    waited: Nanos,
}

/// How far a kernel is, and whether it shall stop: for other threads.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to make all workers stop at the end of a superstep.
    pub stop: AtomicBool,
    /// How many supersteps are over.
    pub supersteps: AtomicU64,
}

/// How a kernel went, at one worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How often all vertices were looked at.
    pub supersteps: u64,
    /// From the first superstep's beginning to the last one's end.
    pub took: Nanos,
    /// How much of that this worker waited: at barriers, for values of other nodes, and to write its own ones.
    pub waited: Nanos,
    /// Somebody asked to stop: the result is not there.
    pub stopped: bool,
}

/// What a superstep of all workers has come to.
pub(super) enum Went {
    /// So many vertices are active.
    On(u64),
    /// Somebody asked to stop.
    Stopped,
}

impl Worker {
    pub(super) fn new(
        graph: Graph,
        number: usize,
        barrier: Barrier,
        edges: Edges,
        degrees: Vec<u32>,
    ) -> Self {
        Self { graph, number, barrier, edges, degrees, waited: Nanos::ZERO }
    }

    /// The graph of which this is a part.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// True if there is a vertex at this one of its slots.
    pub(super) fn is_vertex(&self, at: usize) -> bool {
        let first = self.number * self.degrees.len();
        self.graph.partition().vertex_of((first + at) as u32).is_some()
    }

    /// Runs supersteps until no vertex is active, or somebody asks to stop. All workers count the same.
    pub(super) async fn supersteps<M: Memory, K: Kernel>(
        &mut self,
        mem: &mut M,
        kernel: &mut K,
        control: &Control,
    ) -> Result<Outcome, Error> {
        let done = self.run(mem, kernel, control).await;
        if done.is_err() {
            self.barrier.abandon(mem).await;
        }
        done
    }

    async fn run<M: Memory, K: Kernel>(
        &mut self,
        mem: &mut M,
        kernel: &mut K,
        control: &Control,
    ) -> Result<Outcome, Error> {
        kernel.begin(self, mem).await?;
        self.wait(mem, 0, control).await?;
        let began = mem.now();
        self.waited = Nanos::ZERO;
        let mut supersteps = 0;
        let stopped = loop {
            let active = kernel.superstep(self, mem, supersteps as usize).await?;
            supersteps += 1;
            control.supersteps.store(supersteps, Ordering::Relaxed);
            match self.wait(mem, active, control).await? {
                Went::On(0) => break false,
                Went::On(_) => {}
                Went::Stopped => break true,
            }
        };
        let outcome = Outcome { supersteps, took: mem.now() - began, waited: self.waited, stopped };
        if !stopped {
            let (at, result) = (self.graph.result(self.number), kernel.result(self));
            mem.write(at, &result).await?;
        }
        // Nobody looks at results, or begins anew, before they are there.
        self.wait(mem, 0, &Control::default()).await?;
        Ok(outcome)
    }

    async fn wait<M: Memory>(&mut self, mem: &mut M, active: u64, control: &Control) -> Result<Went, Error> {
        let before = mem.now();
        let brought = if control.stop.load(Ordering::Relaxed) { STOP } else { active };
        let sum = self.barrier.wait(mem, brought).await?;
        self.waited += mem.now() - before;
        Ok(if sum < STOP { Went::On(sum) } else { Went::Stopped })
    }

    /// Reads values of another worker, or of this one, with one call; what comes from other nodes is waited for.
    pub(super) async fn read_values<M: Memory>(
        &mut self,
        mem: &mut M,
        (parity, node): (usize, usize),
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), Error> {
        let before = mem.now();
        mem.read(self.graph.values(parity, node) + offset, into).await?;
        if node != mem.node().index() {
            self.waited += mem.now() - before;
        }
        Ok(())
    }

    /// Writes this worker's values, which takes the copies of other nodes away.
    pub(super) async fn write_values<M: Memory>(
        &mut self,
        mem: &mut M,
        parity: usize,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let (before, (node, thread)) = (mem.now(), self.graph.node_and_thread(self.number));
        let mut at = self.graph.values(parity, node) + (thread * bytes.len()) as u64;
        for piece in bytes.chunks(PIECE) {
            mem.write(at, piece).await?;
            at = at + piece.len() as u64;
        }
        self.waited += mem.now() - before;
        Ok(())
    }
}

/// What differs between kernels. Each superstep gathers over the edges into a worker's vertices, applies what came to
/// each, and scatters by writing the vertices' new values, which others read in the next one.
pub(super) trait Kernel {
    /// Writes the values that superstep 0 reads.
    async fn begin<M: Memory>(&mut self, worker: &mut Worker, mem: &mut M) -> Result<(), Error>;

    /// Gathers, applies and scatters. Gives the number of active vertices.
    async fn superstep<M: Memory>(
        &mut self,
        worker: &mut Worker,
        mem: &mut M,
        number: usize,
    ) -> Result<u64, Error>;

    /// A word for each of the worker's slots.
    fn result(&self, worker: &Worker) -> Vec<u8>;
}
