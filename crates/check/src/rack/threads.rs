//! Application threads of the little rack.

use node::{Access, FrameId};
use wire::{BlockTag, GlobalAddr, Nanos, NodeId, SlotId};

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// Nothing.
    Idle,
    /// Waiting for a block.
    Fetching { slot: SlotId, tag: BlockTag, access: Access },
    /// Waiting for another thread's fetch.
    Joining { slot: SlotId },
    /// Accessing a frame that is pinned for it.
    Accessing { frame: FrameId, tag: BlockTag, access: Access },
    /// Waiting for a block lock.
    Locking { slot: SlotId, tag: BlockTag, write: bool },
    /// Holding a block lock, until then; on paper only, if the lock's home has died.
    Holding { slot: SlotId, tag: BlockTag, until: Nanos, on_paper: bool },
    /// Waiting for an allocation.
    Allocating { slot: SlotId, home: NodeId },
    /// Waiting for a free.
    Freeing { slot: SlotId, addr: GlobalAddr },
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
    /// The slot whose completion it waits for, and whether it started the operation there.
    pub fn waits_for(&self) -> Option<(SlotId, bool)> {
        match self.doing {
            Doing::Fetching { slot, .. }
            | Doing::Locking { slot, .. }
            | Doing::Allocating { slot, .. }
            | Doing::Freeing { slot, .. } => Some((slot, true)),
            Doing::Joining { slot } => Some((slot, false)),
            Doing::Idle | Doing::Accessing { .. } | Doing::Holding { .. } => None,
        }
    }
}
