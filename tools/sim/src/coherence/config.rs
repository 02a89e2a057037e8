//! What can be set.

use node::allocator::ChunkSize;
use node::{Backoff, Directory, HoldTime, Peeks, Retransmission};
use wire::{BlockSize, Nanos, NodeId};

use super::cache::Placement;
use super::control::FIRST;
use super::costs::Costs;
use crate::home::Contents;

/// A rack's FlowCC.
#[derive(Clone, Debug)]
pub struct FlowCcConfig {
    /// Nodes, 1 to 64.
    pub nodes: usize,
    /// Application threads on each.
    pub threads: usize,
    /// The unit of coherence.
    pub block: BlockSize,
    /// Bytes of cache on every node.
    pub cache: u64,
    /// Bytes of memory that every node is home of.
    pub memory: u64,
    /// How blocks find their bucket of the cache.
    pub placement: Placement,
    /// What is kept of blocks.
    pub contents: Contents,
    /// Entries of the switch's directory.
    pub switch_entries: usize,
    /// Where entries are kept.
    pub directory: Directory,
    /// Conflicting requests wait in a queue at whoever has the lock, and are not refused.
    pub queue: bool,
    /// With `queue`: how long a node keeps a block that it is asked for.
    pub hold_time: HoldTime,
    /// Which reads that miss are done where the block is.
    pub peeks: Peeks,
    /// Slots of a node for block locks alone, in multiples of 64; 0: locks take half of those for everything.
    pub lock_slots: usize,
    /// How long an epoch of hotness lasts.
    pub epoch: Nanos,
    /// How many blocks a home moves to the switch at the end of an epoch, at most.
    pub hottest: usize,
    /// An entry that is locked when it is to move to the switch moves as soon as it is free.
    pub persistent: bool,
    /// When lost packets are sent again.
    pub retransmission: Retransmission,
    /// How refused requests wait.
    pub backoff: Backoff,
    /// What takes how much processor time.
    pub costs: Costs,
    /// Keep what the properties need: for small runs.
    pub check: bool,
}

impl FlowCcConfig {
    /// The paper's settings (Concordia, sections 6 and 7.1) for so many nodes with four threads each: blocks of
    /// 4 KiB, 1 GiB of cache and of memory on each node.
    pub fn new(nodes: usize) -> Self {
        let of_node = node::NodeConfig::new(NodeId(0), nodes, 1 << 30);
        Self {
            nodes,
            threads: 4,
            block: BlockSize::DEFAULT,
            cache: 1 << 30,
            memory: 1 << 30,
            placement: Placement::Even,
            contents: Contents::Stamps,
            switch_entries: of_node.switch_entries,
            directory: of_node.directory,
            queue: false,
            hold_time: HoldTime::PUBLISHED_HARDWARE,
            peeks: Peeks::NEVER,
            lock_slots: 0,
            epoch: of_node.epoch,
            hottest: of_node.hottest,
            persistent: false,
            retransmission: Retransmission::AfterRoundTrips {
                floor: Nanos::from_micros(50),
                most: Nanos::MAX,
            },
            backoff: of_node.backoff,
            costs: Costs::PAPER,
            check: false,
        }
    }

    pub(super) fn of_node(&self, id: NodeId) -> node::NodeConfig {
        node::NodeConfig {
            block: self.block,
            chunk: ChunkSize::for_memory(self.memory, self.block),
            directory: self.directory,
            switch_entries: self.switch_entries,
            queue: self.queue,
            hold_time: self.hold_time,
            peeks: self.peeks,
            lock_slots: self.lock_slots,
            epoch: self.epoch,
            hottest: self.hottest,
            persistent: self.persistent,
            retransmission: self.retransmission,
            backoff: self.backoff,
            switch_epoch: FIRST,
            ..node::NodeConfig::new(id, self.nodes, self.memory)
        }
    }
}
