//! How a node is set up. Everything here is the same on all nodes of a rack, but for the id.

use crate::allocator::ChunkSize;
use wire::{BlockSize, Incarnation, Nanos, NodeId, SwitchEpoch};

/// Where directory entries are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Directory {
    /// The hot ones in the switch, the others at their home agents; they migrate (section 5.2).
    #[default]
    Auto,
    /// In the switch from the moment of allocation, as far as they fit.
    Switch,
    /// At the home agents only.
    Home,
}

/// When lost packets are sent again (section 5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retransmission {
    /// Never: the transport loses nothing.
    Never,
    /// Requests after 6 round trips and unlocks after 3, as measured, and twice as late each time that they stay
    /// unanswered; within these bounds.
    AfterRoundTrips {
        /// The shortest time-out.
        floor: Nanos,
        /// The longest. Whoever had to wait once for a process that was stopped has measured a round trip of that
        /// length, and would take the next loss for another one.
        most: Nanos,
    },
}

/// How long a refused request waits before it tries again: a random time up to `first`, doubled with every
/// further refusal up to `most`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// Upper bound of the first wait.
    pub first: Nanos,
    /// Upper bound of any wait.
    pub most: Nanos,
}

/// With [`NodeConfig::queue`]: how long a node whose threads write in a block again and again keeps it from the one behind
/// in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoldTime {
    /// It gives the block away when no thread has written in it for so long.
    pub pause: Nanos,
    /// And at the latest so long after it was asked, so that a wait in the queue stays bounded. Zero: at once.
    pub most: Nanos,
}

impl HoldTime {
    /// The block goes on at once.
    pub const NONE: Self = Self { pause: Nanos::ZERO, most: Nanos::ZERO };
    /// For the published hardware, where an access takes 240 ns and handing a block over some 4 us: a little more than the
    /// one, and twice the other.
    pub const PUBLISHED_HARDWARE: Self = Self { pause: Nanos(300), most: Nanos::from_micros(8) };
}

/// When a read that misses is done where the block is (PEEK), and no copy is fetched. The switch must know PEEK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peeks {
    /// Only reads of at most so many bytes are. 0: none.
    pub most: u32,
    /// How many blocks' reuse a node remembers, to tell those whose copies are written elsewhere before they are read again.
    /// 0: every read is a PEEK at first.
    pub rows: usize,
    /// How often an owner that has just given the block away is asked for again, before a copy is fetched.
    pub tries: u32,
}

impl Peeks {
    /// Every read that misses fetches a copy.
    pub const NEVER: Self = Self { most: 0, rows: 0, tries: 0 };
    /// None does, if there is an owner: for checkers.
    pub const ALWAYS: Self = Self { most: 4095, rows: 0, tries: 1 };
    /// Only those that are worth it. What is asked for fits with its header into 256 bytes, which NICs take with the
    /// doorbell; the table takes 1.5 MiB, and knows 65536 blocks.
    pub const LEARNED: Self = Self { most: 192, rows: 1 << 16, tries: 5 };
}

/// A node's configuration.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// This node.
    pub id: NodeId,
    /// How many nodes the rack has.
    pub nodes: usize,
    /// The unit of coherence.
    pub block: BlockSize,
    /// Bytes of memory that this node is home of.
    pub memory: u64,
    /// The chunks that homes hand to allocators (32 MiB in the paper, section 6).
    pub chunk: ChunkSize,
    /// Where directory entries are kept.
    pub directory: Directory,
    /// Entries that the switch has capacity for; the shadow node keeps a part of them free.
    pub switch_entries: usize,
    /// How long an epoch of hotness lasts (10 ms in the paper, section 5.2.2).
    pub epoch: Nanos,
    /// How many blocks a home moves to the switch at the end of an epoch, at most (1000 in the paper).
    pub hottest: usize,
    /// An entry that is locked when it is to move to the switch moves as soon as it is free, and not in a later epoch.
    pub persistent: bool,
    /// When lost packets are sent again.
    pub retransmission: Retransmission,
    /// How refused requests wait.
    pub backoff: Backoff,
    /// Writes that meet a writer wait in a queue at whoever has the lock, and are not refused. The switch must do the same.
    pub queue: bool,
    /// With `queue`: a READ-MISS that meets a writer is refused so often before it waits in the queue, too. Most are
    /// served sooner by trying again, and share the lock then; in the queue they have it alone.
    pub refusals_before_queue: u32,
    /// With `queue`: how long a node keeps a block that it is asked for.
    pub hold_time: HoldTime,
    /// Which reads are done where the block is.
    pub peeks: Peeks,
    /// On how many nodes each block of memory with copies is kept; 1: there is no such memory.
    pub copies: usize,
    /// With more: how many of these memories there are. The ids behind those of the nodes name them.
    pub copied: usize,
    /// Bytes of blocks a second that come to this node of one memory that it is to have, too, at most.
    pub refill: u64,
    /// Slots for block locks besides those that all nodes have ([`SlotId::PER_NODE`](wire::SlotId::PER_NODE)), in multiples of as many.
    /// The switch must have them, too; with `queue` there are none. Cache agents and allocators never hear of them. Live
    /// racks have none.
    pub lock_slots: usize,
    /// The node that shadows the switch's TAG array.
    pub shadow: NodeId,
    /// The incarnation of the switch.
    pub switch_epoch: SwitchEpoch,
    /// The incarnation of this node.
    pub incarnation: Incarnation,
}

impl NodeConfig {
    /// The paper's settings for node `id` of `nodes`, with `memory` bytes of memory, over a transport that
    /// loses nothing.
    pub fn new(id: NodeId, nodes: usize, memory: u64) -> Self {
        Self {
            id,
            nodes,
            block: BlockSize::DEFAULT,
            memory,
            chunk: ChunkSize::for_memory(memory, BlockSize::DEFAULT),
            directory: Directory::Auto,
            switch_entries: 375_000,
            epoch: Nanos::from_millis(10),
            hottest: 1000,
            persistent: false,
            retransmission: Retransmission::Never,
            backoff: Backoff { first: Nanos(500), most: Nanos::from_micros(64) },
            queue: false,
            refusals_before_queue: 3,
            hold_time: HoldTime::NONE,
            peeks: Peeks::NEVER,
            copies: 1,
            copied: nodes,
            refill: 20 << 20,
            lock_slots: 0,
            shadow: NodeId(0),
            switch_epoch: SwitchEpoch(0),
            incarnation: Incarnation(0),
        }
    }
    /// How many memories the rack has: one of each node, and those with copies if there are such.
    pub const fn memories(&self) -> usize {
        if self.copies > 1 { self.nodes + self.copied } else { self.nodes }
    }

    /// True for a memory with copies.
    pub const fn is_copied(&self, memory: NodeId) -> bool {
        memory.index() >= self.nodes
    }
}
