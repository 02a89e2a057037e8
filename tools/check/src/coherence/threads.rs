//! Application threads of the little rack.

use node::{Access, FrameId};
use wire::{BlockTag, Discipline, GlobalAddr, Nanos, NodeId, SlotId};

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// Nothing.
    Idle,
    /// Waiting for a block, which had been written so often then; `None`: it has been freed since.
    Fetching { slot: SlotId, tag: BlockTag, access: Access, since: Option<u64> },
    /// Waiting for another thread's fetch.
    Joining { slot: SlotId },
    /// Accessing a frame that is pinned for it.
    Accessing { frame: FrameId, tag: BlockTag, access: Access },
    /// Waiting for a block lock.
    Locking { slot: SlotId, tag: BlockTag, write: bool },
    /// Holding a block lock, until then; on paper only, if the lock's home has died.
    Holding { slot: SlotId, tag: BlockTag, until: Nanos, on_paper: bool },
    /// Waiting for an allocation.
    Allocating { slot: SlotId, home: NodeId, discipline: Discipline },
    /// Waiting for a free.
    Freeing { slot: SlotId, addr: GlobalAddr },
    /// Waiting until all writes up to this one are in all copies.
    Syncing { slot: SlotId, upto: u64 },
}

/// A thread on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Where it runs.
    pub node: NodeId,
    /// What it is doing.
    pub doing: Doing,
}

impl Thread {
    /// The block is another allocation's from now on: what this thread reads of it may be older.
    pub(super) fn ends_with(&mut self, gone: BlockTag) {
        if let Doing::Fetching { tag, since, .. } = &mut self.doing
            && *tag == gone
        {
            *since = None;
        }
    }

    /// The slot whose completion it waits for, and whether it started the operation there.
    pub fn waits_for(&self) -> Option<(SlotId, bool)> {
        match self.doing {
            Doing::Fetching { slot, .. }
            | Doing::Locking { slot, .. }
            | Doing::Allocating { slot, .. }
            | Doing::Freeing { slot, .. }
            | Doing::Syncing { slot, .. } => Some((slot, true)),
            Doing::Joining { slot } => Some((slot, false)),
            Doing::Idle | Doing::Accessing { .. } | Doing::Holding { .. } => None,
        }
    }
}
