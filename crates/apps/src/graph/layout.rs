//! What of a graph lies where in the rack's memory.
//!
//! ```text
//! root (node 0)   barrier: 2 blocks | vertices, threads, salt | addresses of each node's arrays
//! each node       values[0], values[1], result: a word for each of its slots
//!                 buffers: two for each pair of one of its workers and any worker, used while building
//!                 edges: one array for each of its workers, made when their number is known
//! ```
//!
//! What must always hold: only the worker of a slot writes what belongs to it. `values` is written in one superstep
//! and read in the next one, while the other of the two is written; so a superstep has one barrier.

use rackmem::{BlockSize, Discipline, GlobalAddr, Memory, NodeId};

use super::barrier::Barrier;
use super::error::Error;
use super::partition::Partition;

/// Words of the root before the addresses.
const HEAD: usize = 3;
/// Arrays of each node.
const ARRAYS: usize = 4;
/// Bytes of all buffers of a worker, unless each has to be larger.
const BUFFERS: u64 = 1 << 20;
/// Bytes read or written with one call, where there is a choice.
pub(super) const PIECE: usize = 64 << 10;

/// A graph in a rack's memory: where it is. Cheap to clone; every worker has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    root: GlobalAddr,
    block: BlockSize,
    partition: Partition,
    arrays: Vec<[GlobalAddr; ARRAYS]>,
}

impl Graph {
    /// Allocates what a graph needs beside its edges.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is too little.
    pub async fn create<M: Memory>(mem: &mut M, partition: Partition) -> Result<Self, Error> {
        let block = mem.block_size();
        let root_bytes = 2 * block.bytes() + 8 * (HEAD + ARRAYS * partition.nodes()) as u64;
        let root = mem.alloc(root_bytes, NodeId(0), Discipline::Coherent).await?;
        let mut this = Self { root, block, partition, arrays: Vec::new() };
        let values = 8 * partition.slots_of_node();
        let buffers = this.buffers_of_worker() * partition.threads() as u64;
        for node in (0..).map(NodeId).take(partition.nodes()) {
            let mut of_node = [root; ARRAYS];
            for (addr, bytes) in of_node.iter_mut().zip([values, values, values, buffers]) {
                *addr = mem.alloc(bytes, node, Discipline::Coherent).await?;
            }
            this.arrays.push(of_node);
        }
        let head = [partition.vertices(), partition.threads() as u64, partition.salt()];
        let addresses = this.arrays.iter().flatten().map(|addr| addr.bits());
        let bytes: Vec<u8> = head.into_iter().chain(addresses).flat_map(u64::to_le_bytes).collect();
        mem.write(root + 2 * block.bytes(), &bytes).await?;
        Ok(this)
    }

    /// The graph whose [`Graph::root`] this is, on any node.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub async fn open<M: Memory>(mem: &mut M, root: GlobalAddr) -> Result<Self, Error> {
        let (block, nodes) = (mem.block_size(), mem.nodes());
        let mut bytes = vec![0; 8 * (HEAD + ARRAYS * nodes)];
        mem.read(root + 2 * block.bytes(), &mut bytes).await?;
        let words: Vec<u64> = words(&bytes).collect();
        let (head, addresses) = words.split_at(HEAD);
        let partition = Partition::new(head[0], nodes, head[1] as usize, head[2])?;
        let arrays =
            addresses.as_chunks().0.iter().map(|of_node| of_node.map(GlobalAddr::from_bits)).collect();
        Ok(Self { root, block, partition, arrays })
    }

    /// Where it begins, for [`Graph::open`].
    pub fn root(&self) -> GlobalAddr {
        self.root
    }

    /// How its vertices are divided.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Bytes of each node's memory that a graph with so many stored edges needs: its words, its buffers, and its
    /// share of the edges with a quarter more, since shares differ.
    pub fn bytes_needed(partition: &Partition, edges: u64, block: BlockSize) -> u64 {
        /// Chunks of allocators.
        const BESIDE: u64 = 64 << 20;
        let root = GlobalAddr::new(NodeId(0), 0);
        let buffers = Self { root, block, partition: *partition, arrays: Vec::new() }.buffers_of_worker();
        let share = edges.div_ceil(partition.nodes() as u64).saturating_mul(5);
        24 * partition.slots_of_node() + buffers * partition.threads() as u64 + share + BESIDE
    }

    /// What all workers have written of their vertices' results, by vertex.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub async fn results<M: Memory>(&self, mem: &mut M) -> Result<Vec<u64>, Error> {
        let mut results = vec![0; self.partition.vertices() as usize];
        let (mut piece, mut slot) = (vec![0; PIECE], 0_u32);
        for of_node in &self.arrays {
            let (mut at, mut left) = (of_node[2], 8 * self.partition.slots_of_node());
            while left > 0 {
                let piece = &mut piece[..left.min(PIECE as u64) as usize];
                mem.read(at, piece).await?;
                for word in words(piece) {
                    if let Some(vertex) = self.partition.vertex_of(slot) {
                        results[vertex as usize] = word;
                    }
                    slot += 1;
                }
                (at, left) = (at + piece.len() as u64, left - piece.len() as u64);
            }
        }
        Ok(results)
    }

    pub(super) fn barrier(&self) -> Barrier {
        Barrier::new(self.root, self.block.bytes(), self.partition.workers())
    }

    /// The array of values that is written in supersteps with this number's parity, of a node.
    pub(super) fn values(&self, parity: usize, node: usize) -> GlobalAddr {
        self.arrays[node][parity % 2]
    }

    /// The results of a worker's slots.
    pub(super) fn result(&self, worker: usize) -> GlobalAddr {
        let (node, thread) = self.node_and_thread(worker);
        self.arrays[node][2] + 8 * (thread * self.partition.slots_of_worker()) as u64
    }

    /// The node of a worker, and its number there.
    pub(super) fn node_and_thread(&self, worker: usize) -> (usize, usize) {
        (worker / self.partition.threads(), worker % self.partition.threads())
    }

    /// Bytes of a buffer.
    pub(super) fn buffer_bytes(&self) -> u64 {
        let block = self.block.bytes();
        (BUFFERS / (2 * self.partition.workers() as u64)).next_multiple_of(block).max(block)
    }

    fn buffers_of_worker(&self) -> u64 {
        self.buffer_bytes() * 2 * self.partition.workers() as u64
    }

    /// What one worker has for another one, in rounds with this number's parity.
    pub(super) fn buffer(&self, parity: usize, from: usize, to: usize) -> GlobalAddr {
        let ((node, thread), workers) = (self.node_and_thread(from), self.partition.workers());
        self.arrays[node][3] + self.buffer_bytes() * ((2 * thread + parity % 2) * workers + to) as u64
    }
}

/// Bytes as words.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}
