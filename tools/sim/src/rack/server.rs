//! A processor as the rack sees it: it handles one message at a time, in order of arrival.
//!
//! What must always hold: while a message is current, `Handled` is in the queue once for this incarnation; a message
//! waits only behind a current one.

use std::collections::VecDeque;

use wire::{Nanos, NodeId};

use super::event::FlightId;

/// A processor of a node.
pub(super) struct Server {
    pub(super) node: NodeId,
    /// When it has done what it began; a thread's clock.
    pub(super) free: Nanos,
    /// What it works on.
    pub(super) current: Option<FlightId>,
    pub(super) inbox: VecDeque<FlightId>,
    /// Counts its incarnations: events of a former one are void.
    pub(super) incarnation: u16,
    /// Time spent on messages.
    pub(super) busy: Nanos,
    /// Messages handled.
    pub(super) handled: u64,
}

impl Server {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node,
            free: Nanos::ZERO,
            current: None,
            inbox: VecDeque::new(),
            incarnation: 0,
            busy: Nanos::ZERO,
            handled: 0,
        }
    }

    /// Takes this much of its time, from `now` on or when it is free.
    pub(super) fn spend(&mut self, now: Nanos, time: Nanos) -> Nanos {
        self.free = self.free.max(now) + time;
        self.busy += time;
        self.free
    }
}
