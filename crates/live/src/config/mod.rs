//! How a rack is set up, whatever carries its messages.

use node::{Backoff, Peeks, Turn};
use switch::flowcc::{self, Switch};
use switch::locks::Directory;
use wire::{BlockSize, LockEnd, Nanos, NodeId, SwitchEpoch};

use crate::memory::NodeMemory;

/// The most bytes that are read where the block is.
const LONGEST_PEEK: u32 = 2048;

/// How a rack is set up, the same on all its places. The public API checks what a user may have got wrong; here it is asserted.
#[derive(Clone, Debug)]
pub struct RackConfig {
    /// How many nodes: 1 to 64.
    pub nodes: usize,
    /// The unit of coherence.
    pub block: BlockSize,
    /// Bytes of cache on every node.
    pub cache: u64,
    /// Bytes of memory that every node is home of.
    pub memory: u64,
    /// Entries of the switch's directory.
    pub switch_entries: usize,
    /// Where directory entries are kept.
    pub directory: node::Directory,
    /// Conflicting requests wait in line at whoever has the lock, and are not refused.
    pub queue: bool,
    /// Small reads of blocks that others are writing are done where the block is.
    pub peek: bool,
    /// How long an epoch of hotness lasts.
    pub epoch: Nanos,
    /// Bytes on every node for copies of what locks guard.
    pub lock_copies: u64,
    /// Entries of the switch's lock directory.
    pub lock_entries: usize,
    /// What the switch does with packets of chains. None: it carries them on.
    pub steering: Option<Steering>,
}

/// How a switch steers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steering {
    /// Keys whose tails it holds, to send each append to the true one: the so many hottest.
    pub keys: usize,
    /// It sends reads to the tail, too.
    pub reads: bool,
    /// When it is another one, the metadata servers tell it the tails that they know.
    pub preload: bool,
}

impl RackConfig {
    /// The numbers of the nodes.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes).map(|id| NodeId(u16::try_from(id).expect("at most 64 nodes")))
    }

    /// How the machines of one node are set up, over a transport that loses nothing.
    pub(crate) fn node(&self, id: NodeId) -> node::Config {
        node::Config {
            block: self.block,
            chunk: node::allocator::ChunkSize::for_memory(self.memory, self.block),
            directory: self.directory,
            switch_entries: self.switch_entries,
            epoch: self.epoch,
            queue: self.queue,
            peeks: self.peeks(),
            // A turn ends at a deadline, and nobody carries a node's deadlines while all its threads hit: an embedded rack
            // would notice a millisecond late.
            turn: Turn::NONE,
            backoff: Backoff { first: Nanos(400), most: Nanos::from_micros(50) },
            ..node::Config::new(id, self.nodes, self.memory)
        }
    }

    /// Which reads are done where the block is: of less than half a block, so that much of it stays where it is; and not of so much
    /// that copying it twice takes longer than fetching it. Of as many blocks as there is cache for, a node remembers how they are used.
    fn peeks(&self) -> Peeks {
        if !self.peek {
            return Peeks::NEVER;
        }
        let half = u32::try_from(self.block.bytes() / 2).expect("a block has at most 1 MiB");
        let frames = usize::try_from(self.cache / self.block.bytes()).unwrap_or(usize::MAX);
        let Peeks { rows, tries, .. } = Peeks::LEARNED;
        Peeks { most: half.min(LONGEST_PEEK), rows: frames.clamp(256, rows), tries }
    }

    /// How the locks of one node are set up, over a transport that loses nothing.
    pub(crate) fn locks(&self, id: NodeId) -> node::locks::Config {
        node::locks::Config {
            in_switch: self.directory != node::Directory::Home,
            ..node::locks::Config::new(id, self.nodes)
        }
    }

    /// The memory of one node.
    pub(crate) fn memory(&self) -> NodeMemory {
        NodeMemory::new(self.block, self.cache, self.memory).with_lock_copies(self.lock_copies)
    }

    /// The switch's directories, of blocks and of locks.
    ///
    /// # Panics
    /// If the chip has no room for them.
    pub(crate) fn directories(&self) -> (Switch, Directory) {
        let (nodes, epoch) = (self.nodes, SwitchEpoch(0));
        let flowcc = flowcc::Config {
            nodes,
            entries: self.switch_entries,
            epoch,
            queue: self.queue,
            peeks: self.peek,
        };
        let locks = switch::locks::Config { at: LockEnd::Switch, nodes, entries: self.lock_entries, epoch };
        (
            Switch::new(&flowcc).expect("the FlowCC program fits the chip"),
            Directory::new(&locks).expect("the lock program fits the chip"),
        )
    }
}
