//! One home's directory: what nodes have copies of its blocks, and what is being changed.
//!
//! What must always hold: an entry changes when its transition ends, and a block has at most one transition. (The
//! home's own accesses need no copy: they are not in the copyset.)

use std::collections::{BTreeMap, VecDeque};

use node::Access;
use sim::system::ThreadId;
use wire::{Copyset, GlobalStatus, NodeId};

use crate::home::{Paged, Payload};

/// What is known of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// Unshared, Shared, or Modified (GAM says Dirty).
    pub(super) status: GlobalStatus,
    /// The sharers, or the owner.
    pub(super) copies: Copyset,
}

impl Default for Entry {
    fn default() -> Self {
        Self { status: GlobalStatus::Unshared, copies: Copyset::EMPTY }
    }
}

impl Entry {
    pub(super) const fn dirty(owner: NodeId) -> Self {
        Self { status: GlobalStatus::Modified, copies: Copyset::only(owner) }
    }

    /// Shared by these nodes, if there are any.
    pub(super) const fn shared(copies: Copyset) -> Self {
        let status = if copies.is_empty() { GlobalStatus::Unshared } else { GlobalStatus::Shared };
        Self { status, copies }
    }

    /// The owner of a dirty block.
    pub(super) fn owner(&self) -> NodeId {
        assert_eq!(self.status, GlobalStatus::Modified, "only a dirty block has an owner");
        self.copies.pick(0).expect("a dirty block has an owner")
    }
}

/// Who wants to access a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Requester {
    /// Another node; and whether it has a shared copy.
    Remote(NodeId, bool),
    /// A thread of the home itself.
    Local(ThreadId),
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub(super) requester: Requester,
    pub(super) access: Access,
}

/// What a transition waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// For acknowledgements of these sharers (To-Dirty, To-Unshared).
    Invalidating(Request, Copyset),
    /// For the owner (To-Shared, To-Dirty, To-Unshared).
    Fetching(Request, Given),
    /// For a thread of the home to use what it was granted.
    Serving(ThreadId),
}

/// Who has given a block up while the home waits for its owner's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Given {
    /// The owner has written it back, and answers nevertheless.
    pub(super) by_owner: bool,
    /// The requester had the block from the owner sooner than the home had word of it, and evicted it again.
    pub(super) by_requester: Option<Evicted>,
}

/// What a requester evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Evicted {
    Shared,
    Dirty(Payload),
}

/// A block between two states.
#[derive(Debug)]
pub(super) struct Transition {
    pub(super) phase: Phase,
    /// Requests that met it, in order of arrival.
    pub(super) queue: VecDeque<Request>,
}

/// The directory. Blocks are named by their number in the home's memory.
#[derive(Debug, Default)]
pub(super) struct Directory {
    entries: Paged<Entry>,
    transitions: BTreeMap<usize, Transition>,
}

impl Directory {
    pub(super) fn entry(&self, block: usize) -> Entry {
        self.entries.get(block)
    }

    pub(super) fn set(&mut self, block: usize, entry: Entry) {
        *self.entries.entry(block) = entry;
    }

    pub(super) fn transition(&mut self, block: usize) -> Option<&mut Transition> {
        self.transitions.get_mut(&block)
    }

    pub(super) fn in_transition(&self, block: usize) -> bool {
        self.transitions.contains_key(&block)
    }

    /// A transition begins; requests that wait already go on waiting.
    pub(super) fn begin(&mut self, block: usize, phase: Phase, queue: VecDeque<Request>) {
        let before = self.transitions.insert(block, Transition { phase, queue });
        assert!(before.is_none(), "block {block} is in transition: {before:?}");
    }

    /// A transition is over; who waited for that.
    pub(super) fn end(&mut self, block: usize) -> VecDeque<Request> {
        self.transitions.remove(&block).map(|transition| transition.queue).unwrap_or_default()
    }

    /// Whether the home's memory has the latest contents.
    pub(super) fn is_current(&self, block: usize) -> bool {
        self.entry(block).status != GlobalStatus::Modified
    }

    /// Whether a thread of the home may access the block without asking anybody.
    pub(super) fn admits(&self, block: usize, access: Access) -> bool {
        match self.entry(block).status {
            GlobalStatus::Unshared => true,
            GlobalStatus::Shared => access == Access::Shared,
            GlobalStatus::Modified => false,
        }
    }

    /// Blocks in transition.
    pub(super) fn transitions(&self) -> usize {
        self.transitions.len()
    }
}
