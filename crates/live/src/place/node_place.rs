//! A node in its place.

use std::sync::Arc;

use node::{DataRef, Node, Outcome};
use wire::{Nanos, SlotId};

use super::courier::Bell;

/// The node's machines, and the threads that wait for them.
pub(crate) struct NodePlace {
    pub(crate) node: Node,
    /// Whom to tell when the operation in a slot is over: first the thread that started it.
    waiting: [Vec<Arc<Bell>>; SlotId::PER_NODE],
    /// Contents that came with messages and are still needed.
    pub(crate) kept: Vec<DataRef>,
    /// The latest time that the node was told: threads read the clock before they enter.
    now: Nanos,
}

impl NodePlace {
    pub(crate) fn new(node: Node) -> Self {
        Self { node, waiting: std::array::from_fn(|_| Vec::new()), kept: Vec::new(), now: Nanos::ZERO }
    }

    /// Time as the node sees it: it never runs back.
    pub(crate) fn at(&mut self, now: Nanos) -> Nanos {
        self.now = self.now.max(now);
        self.now
    }

    /// The thread waits for the operation in this slot.
    pub(crate) fn wait_for(&mut self, slot: SlotId, bell: Arc<Bell>) {
        self.waiting[slot.index()].push(bell);
    }

    /// The operation is over: the thread that started it gets the outcome, those that joined try again.
    pub(crate) fn completed(&mut self, slot: SlotId, outcome: Outcome) {
        let mut outcome = Some(outcome);
        for bell in self.waiting[slot.index()].drain(..) {
            bell.ring(outcome.take().unwrap_or(Outcome::Retry));
        }
    }

    /// The slots that threads wait for, and how many do.
    pub(crate) fn waited_for(&self) -> impl Iterator<Item = (usize, usize)> {
        self.waiting.iter().map(Vec::len).enumerate().filter(|(_, threads)| *threads > 0)
    }

    /// Every thread that waits gets this outcome.
    pub(crate) fn ring_all(&mut self, outcome: Outcome) {
        self.waiting.iter_mut().flat_map(|bells| bells.drain(..)).for_each(|bell| bell.ring(outcome));
    }
}
