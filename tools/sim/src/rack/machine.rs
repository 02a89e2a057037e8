//! A node's hardware, and what the rack keeps for it.
//!
//! What must always hold: `pending` holds the time of every event in the queue that concerns the node, but for its
//! threads' own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wire::Nanos;

use crate::hardware::{Nic, Testbed};

/// One node.
pub(super) struct Machine {
    /// With the link to the switch.
    pub(super) nic: Nic,
    pub(super) up: bool,
    /// When its timer goes off.
    pub(super) armed: Nanos,
    pending: BinaryHeap<Reverse<Nanos>>,
}

impl Machine {
    pub(super) fn new(testbed: &Testbed) -> Self {
        Self { nic: Nic::new(testbed), up: true, armed: Nanos::MAX, pending: BinaryHeap::new() }
    }

    pub(super) fn expect_event(&mut self, at: Nanos) {
        self.pending.push(Reverse(at));
    }

    /// Events happen in order, so the one that happened was the earliest.
    pub(super) fn event_happened(&mut self, at: Nanos) {
        let earliest = self.pending.pop();
        debug_assert_eq!(earliest, Some(Reverse(at)), "events of a node happen in order");
    }

    /// The earliest event that concerns the node.
    pub(super) fn next_event(&self) -> Nanos {
        self.pending.peek().map_or(Nanos::MAX, |at| at.0)
    }
}
