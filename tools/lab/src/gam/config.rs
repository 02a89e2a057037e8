//! What can be set.

use sim::coherence::Contents;
use wire::BlockSize;

use super::costs::Costs;

/// How a miss of an application thread gets to the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandOver {
    /// The thread itself looks up cache and directory and posts the request; a background thread takes the answer
    /// and notifies it. This is what the public code does as its settings come (`MULTITHREAD` defined).
    Direct,
    /// The thread puts a work request into a queue of a background thread, which does the rest: what the public code
    /// does without that setting.
    Queue,
}

/// A rack's GAM.
#[derive(Clone, Copy, Debug)]
pub struct GamConfig {
    /// Nodes, 1 to 64.
    pub nodes: usize,
    /// Application threads on each.
    pub threads: usize,
    /// Background threads on each that handle coherence messages, a block's messages always the same one. The Concordia
    /// paper has two (section 7.1); in GAM's public code one of its two handles all of them, the other runs the event loop
    /// of timers and connections.
    pub agents: u8,
    /// The unit of coherence.
    pub block: BlockSize,
    /// Bytes of cache on every node.
    pub cache: u64,
    /// Bytes of memory that every node is home of.
    pub memory: u64,
    /// What is kept of blocks.
    pub contents: Contents,
    /// Who sends a thread's requests.
    pub hand_over: HandOver,
    /// What takes how much processor time.
    pub costs: Costs,
    /// Keep what the properties need: for small runs.
    pub check: bool,
}

impl GamConfig {
    /// GAM's own block size, and two background threads (Concordia, section 7.1), for so many nodes with four
    /// threads, 1 GiB of cache and of memory each.
    pub const fn new(nodes: usize) -> Self {
        let block = BlockSize::new(512).expect("a power of two");
        Self {
            nodes,
            threads: 4,
            agents: 2,
            block,
            cache: 1 << 30,
            memory: 1 << 30,
            contents: Contents::Stamps,
            hand_over: HandOver::Direct,
            costs: Costs::PAPER,
            check: false,
        }
    }
}
