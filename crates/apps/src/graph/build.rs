//! Building a graph, by all workers at once and in bounded memory.
//!
//! Each worker reads a part of the input. An edge is sent to the worker of its target, which keeps it, and to that of
//! its source, which counts it: a rank is divided by the number of edges out of its vertex. Edges travel in
//! *buffers*, one from each worker to each: a round fills them, writes each with one call, waits for all workers, and
//! reads what came, again with one call each. There are two of each buffer, so that a round has one barrier.
//!
//! Memory that is the process's own: buffers, 8 bytes for each edge that a worker keeps, and 4 for each of its
//! vertices. The 8 bytes are gone when [`Builder::finish`] has sorted the edges and written them with 4 each.
//!
//! What must always hold: a round ends at all workers or at none.

use rackmem::{Memory, NodeId};

use super::barrier::Barrier;
use super::edges::{Edges, Key};
use super::error::Error;
use super::input::Edge;
use super::layout::{Graph, words};
use super::worker::Worker;

/// One worker's part of building a graph.
#[derive(Debug)]
pub struct Builder<I> {
    graph: Graph,
    number: usize,
    barrier: Barrier,
    input: I,
    /// Each edge is there in both directions.
    undirected: bool,
    /// Edges of the input that were read so far.
    read: u64,
    rounds: usize,
    exhausted: bool,
    /// What goes into the buffer to each worker: source above target.
    outgoing: Vec<Vec<u64>>,
    kept: Vec<Key>,
    degrees: Vec<u32>,
    arrived: Vec<u8>,
}

impl<I: Iterator<Item = Edge>> Builder<I> {
    /// The part of this worker, which reads `input`. There must be one for each worker of the graph.
    pub fn new(graph: &Graph, number: usize, input: I, undirected: bool) -> Self {
        let partition = graph.partition();
        Self {
            graph: graph.clone(),
            number,
            barrier: graph.barrier(),
            input,
            undirected,
            read: 0,
            rounds: 0,
            exhausted: false,
            outgoing: vec![Vec::new(); partition.workers()],
            kept: Vec::new(),
            degrees: vec![0; partition.slots_of_worker()],
            arrived: Vec::new(),
        }
    }

    /// Edges of the input that this worker has read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Exchanges some edges. False if that was the last round.
    ///
    /// # Errors
    /// [`Error::Input`], [`Error::Memory`], and [`Error::Abandoned`] if another worker has failed.
    pub async fn round<M: Memory>(&mut self, mem: &mut M) -> Result<bool, Error> {
        let done = self.exchange(mem).await;
        if done.is_err() {
            self.barrier.abandon(mem).await;
        }
        done
    }

    async fn exchange<M: Memory>(&mut self, mem: &mut M) -> Result<bool, Error> {
        self.fill()?;
        let (workers, me) = (self.outgoing.len(), self.number);
        for to in (0..workers).filter(|to| *to != me) {
            let edges = &mut self.outgoing[to];
            let sent: Vec<u8> =
                [edges.len() as u64].into_iter().chain(edges.drain(..)).flat_map(u64::to_le_bytes).collect();
            mem.write(self.graph.buffer(self.rounds, me, to), &sent).await?;
        }
        let own = std::mem::take(&mut self.outgoing[me]);
        own.into_iter().for_each(|edge| self.take(edge));
        let going_on = self.barrier.wait(mem, u64::from(!self.exhausted)).await?;
        for from in (0..workers).filter(|from| *from != me) {
            let at = self.graph.buffer(self.rounds, from, me);
            let count = mem.read_word(at).await?;
            let mut arrived = std::mem::take(&mut self.arrived);
            arrived.resize(8 * count as usize, 0);
            mem.read(at + 8, &mut arrived).await?;
            words(&arrived).for_each(|edge| self.take(edge));
            self.arrived = arrived;
        }
        self.rounds += 1;
        Ok(going_on > 0)
    }

    /// Reads edges until a buffer is full, or there are no more.
    fn fill(&mut self) -> Result<(), Error> {
        let capacity = (self.graph.buffer_bytes() / 8 - 1) as usize;
        // An edge puts two into a buffer at most: there and back.
        let full = |outgoing: &Vec<u64>| outgoing.len() + 2 > capacity;
        let partition = *self.graph.partition();
        let vertices = partition.vertices();
        while let Some(edge) = self.input.next() {
            let (from, to) = edge?;
            if let Some(vertex) = [from, to].into_iter().find(|vertex| u64::from(*vertex) >= vertices) {
                return Err(Error::NoSuchVertex { vertex: vertex.into(), vertices });
            }
            self.read += 1;
            let (from, to) = (partition.slot_of(from), partition.slot_of(to));
            let owners = [from, to].map(|slot| partition.worker_of(slot));
            let both = [(from, to), (to, from)];
            for (from, to) in both.into_iter().take(1 + usize::from(self.undirected)) {
                let edge = u64::from(from) << 32 | u64::from(to);
                self.outgoing[owners[0]].push(edge);
                if owners[0] != owners[1] {
                    self.outgoing[owners[1]].push(edge);
                }
            }
            if owners.into_iter().any(|owner| full(&self.outgoing[owner])) {
                return Ok(());
            }
        }
        self.exhausted = true;
        Ok(())
    }

    /// An edge into a vertex of this worker, or out of one, or both.
    fn take(&mut self, edge: u64) {
        let partition = self.graph.partition();
        let (from, to) = ((edge >> 32) as u32, edge as u32);
        let first = self.number * partition.slots_of_worker();
        if partition.worker_of(from) == self.number {
            self.degrees[from as usize - first] += 1;
        }
        if partition.worker_of(to) == self.number {
            let (segment, source) = partition.in_segment(from);
            self.kept.push(Key::new(segment, to as u64 - first as u64, source));
        }
    }

    /// Writes the edges into the rack's memory, after the last round.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is too little, and [`Error::Abandoned`].
    pub async fn finish<M: Memory>(mut self, mem: &mut M) -> Result<Worker, Error> {
        self.kept.sort_unstable();
        let (node, _) = self.graph.node_and_thread(self.number);
        let segments = self.graph.partition().segments();
        let written = Edges::write(mem, NodeId(node as u16), segments, &self.kept).await;
        match written {
            Ok(edges) => {
                let worker = Worker::new(self.graph, self.number, self.barrier, edges, self.degrees);
                Ok(worker)
            }
            Err(error) => {
                self.barrier.abandon(mem).await;
                Err(error)
            }
        }
    }
}
