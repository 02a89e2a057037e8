//! What a run is like: everything that is not drawn step by step.

use wire::{Nanos, NodeId};

use super::{Faults, Order, Restarts, STEP};

/// What all racks have in common.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// How many nodes.
    pub nodes: usize,
    /// Application threads on each.
    pub threads: usize,
    /// Which packet comes next.
    pub order: Order,
    /// How many copies there are of memories with copies; 1: there is no such memory.
    pub copies: usize,
    /// What goes wrong on the way.
    pub faults: Faults,
    /// What stops.
    pub restarts: Restarts,
    /// In every third epoch a node is about to leave, each in its turn: what it has is to come to others.
    pub drains: bool,
    /// Nodes that die right before these steps, if another one is up.
    pub deaths: [Option<(usize, NodeId)>; 2],
    /// How much time passes in a step: a packet at most arrives in one, so the less, the faster is the network.
    pub step: Nanos,
    /// Everybody hears of an epoch before anything is delivered in it: where nothing is sent again, nothing may come too early.
    pub told_at_once: bool,
    /// After so many faults, none happens any more.
    pub most_faults: u64,
    /// Print every delivery, for finding out why a run failed.
    pub trace: bool,
}

impl Conditions {
    /// A small rack in which nothing goes wrong: how small, is drawn.
    pub(crate) fn drawn(up_to: &mut impl FnMut(usize) -> usize, order: Order) -> Self {
        Self {
            nodes: 2 + up_to(2),
            threads: 1 + up_to(2),
            order,
            copies: 1,
            faults: Faults::default(),
            restarts: Restarts::default(),
            drains: false,
            deaths: [None; 2],
            step: STEP,
            told_at_once: false,
            most_faults: u64::MAX,
            trace: false,
        }
    }
}

/// A run: the conditions of every rack, and what belongs to the world in it.
#[derive(Clone, Copy, Debug)]
pub struct Plan<P> {
    /// Of every rack.
    pub rack: Conditions,
    /// Of this one.
    pub world: P,
}

impl<P> Plan<P> {
    /// The same, and all that happens is printed.
    #[must_use]
    pub fn traced(mut self, trace: bool) -> Self {
        self.rack.trace = trace;
        self
    }
}
