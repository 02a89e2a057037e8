//! A hardware thread that does one thing after the other.
//!
//! Each application thread and each agent of a node has one to itself, as in the paper's testbed with its 24
//! cores. What must always hold: work is done in the order in which it is given, without gaps while there is
//! some.

use wire::Nanos;

/// A processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Processor {
    free: Nanos,
    busy: Nanos,
    runs: u64,
}

impl Processor {
    /// An idle processor.
    pub const fn new() -> Self {
        Self { free: Nanos::ZERO, busy: Nanos::ZERO, runs: 0 }
    }

    /// Does work of this cost, that is there from `now` on, after all that was given before. Returns when it is
    /// done.
    pub fn run(&mut self, now: Nanos, cost: Nanos) -> Nanos {
        self.free = self.free.max(now) + cost;
        self.busy += cost;
        self.runs += 1;
        self.free
    }

    /// When it has done all that was given.
    pub const fn free(&self) -> Nanos {
        self.free
    }

    /// How long it has worked, or will have when it is free.
    pub const fn busy(&self) -> Nanos {
        self.busy
    }

    /// How often it was given work.
    pub const fn runs(&self) -> u64 {
        self.runs
    }

    /// The share of the time until `now` in which it worked.
    pub fn utilisation(&self, now: Nanos) -> f64 {
        if now == Nanos::ZERO { 0.0 } else { self.busy.0 as f64 / now.0 as f64 }
    }
}
