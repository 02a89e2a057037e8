//! What is outside of all places: what threads do, what the control plane knows, what is true of the memory.

use node::{Kept, View};
use switch::coherence::Dump;
use wire::{Copyset, Discipline, Incarnation, NodeId};

use super::Outside;
use crate::explore::world::Fault;

/// What the control plane knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Control {
    /// The rack as it was announced last.
    pub(super) view: View,
    /// The incarnation that each node is in, or was in last.
    pub(super) incarnations: Vec<Incarnation>,
    /// The nodes that run.
    pub(super) up: Copyset,
    /// Something has stopped or started that nobody has been told of.
    pub(super) changed: bool,
    /// What the switch knew at the end of each epoch.
    pub(super) dumps: Vec<Dump>,
    /// Who has each memory with copies whole, and is up.
    pub(super) memories: Vec<Kept>,
}

impl Control {
    /// A node has died at some time.
    pub(super) fn has_lost_a_node(&self) -> bool {
        self.up.len() < self.incarnations.len()
            || self.incarnations.iter().any(|incarnation| *incarnation > Incarnation(0))
    }

    /// This node has died at some time.
    pub(super) fn has_lost(&self, node: NodeId) -> bool {
        !self.up.contains(node) || self.incarnations[node.index()] > Incarnation(0)
    }
}

/// What is true of the block of memory, whatever machines think of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Memory {
    /// What its home has it allocated as.
    pub(super) discipline: Option<Discipline>,
    /// How often it became live, or ended.
    pub(super) changes: u8,
    /// The last write.
    pub(super) latest: u64,
    /// The change of the allocation that a thread was about to have freed when it died.
    pub(super) dead_free: Option<u8>,
    /// Its data are lost, and whoever has taken the lock has not left it.
    pub(super) hollow: bool,
}

/// What a thread is doing. Where it waits, how often the memory had changed when it began: if it has not since, it was
/// the same all the time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Doing {
    /// Nothing: its next turn may begin.
    #[default]
    Idle,
    /// Waiting for memory, in this slot.
    Allocating(u16, u8),
    /// Waiting for its end: of the allocation of this change.
    Freeing {
        of: u8,
        slot: u16,
    },
    /// Waiting for a block.
    Fetching(u16, u8),
    /// Waiting for a block lock, in this slot; holding it.
    Locking(u16),
    Holding(u16),
    /// Waiting until what had been written up to here is safe.
    Syncing {
        slot: u16,
        upto: u8,
    },
    /// Waiting for another thread's block.
    Joining(u16),
    /// About to access a frame that is pinned for it; on paper, if the memory has died that it is a copy of.
    Pinned {
        frame: u32,
        on_paper: bool,
    },
    /// Waiting until it may enter; with true, it takes what is lost.
    Waiting(u8, bool),
    /// Told that the lock is lost, which it is about to take.
    ToldOfLoss,
    /// Inside of the allocation of this change; whether it has taken what was lost, and is about to have it freed.
    Inside {
        of: u8,
        taken: bool,
        frees: bool,
    },
    /// Inside, having asked the allocator to take the memory back, in this slot.
    Returning {
        of: u8,
        taken: bool,
        slot: u16,
    },
    /// Inside, about to end the lock; with true, to give up what it has taken.
    Returned(bool),
    /// Waiting for that.
    Ending(bool),
}

/// What is outside of all places, beside threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct More {
    /// What the control plane knows, by number.
    pub(super) control: u32,
    pub(super) memory: Memory,
    /// What is true of memory with copies, by number.
    pub(super) copied: u32,
    /// Nodes for which a time-out came that others are still to have: time passes for all.
    pub(super) timed_out: Copyset,
}

/// What may still happen, beside lost packets and those that come twice.
pub(super) const RESTART: Fault = Fault(2);
pub(super) const DEATH: Fault = Fault(3);
pub(super) const RETURN: Fault = Fault(4);

impl Outside {
    /// True if a thread wants the allocation of this change freed, or has died meanwhile.
    pub(super) fn frees(&self, change: u8) -> bool {
        let mut doing = self.threads.iter().map(|thread| thread.doing);
        self.more.memory.dead_free == Some(change)
            || doing.any(
                |it| matches!(it, Doing::Freeing { of, .. } | Doing::Returning { of, .. } if of == change),
            )
    }
}
