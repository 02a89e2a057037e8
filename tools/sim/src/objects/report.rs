//! What a run gave.

use nic::objects::Counters;
use wire::Nanos;

use crate::hardware::Picos;
use crate::rack::Histogram;

/// What was counted. Times in picoseconds.
#[derive(Clone, Default)]
pub(super) struct Tally {
    pub(super) operations: u64,
    pub(super) refused: u64,
    pub(super) torn: u64,
    pub(super) events: u64,
    pub(super) framework: u64,
    pub(super) transfer: u64,
    pub(super) check: u64,
    pub(super) application: u64,
    total: u64,
    latency: Histogram,
}

impl Tally {
    /// An operation is over.
    pub(super) fn count(&mut self, span: Picos) {
        self.operations += 1;
        self.total += span.0;
        self.latency.record(span.round_up());
    }
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct ObjectsReport {
    /// Operations that are over.
    pub operations: u64,
    /// Attempts that found their object torn or locked.
    pub refused: u64,
    /// Objects that were called whole and were not. Of plain reads, which check nothing: those that were torn.
    pub torn: u64,
    /// Events of the simulation.
    pub events: u64,
    /// Nanoseconds that it took.
    pub time: f64,
    /// Nanoseconds of an operation, on average.
    pub mean: f64,
    /// Of those: in the look-up before it.
    pub framework: f64,
    /// In transfers, from posting to the completion.
    pub transfer: f64,
    /// In finding out, in software, whether the object is whole.
    pub check: f64,
    /// In using it.
    pub application: f64,
    /// How long which operations took.
    pub latency: Histogram,
    /// What the engines have counted, from the very beginning.
    pub sabres: Counters,
}

impl ObjectsReport {
    pub(super) fn new(tally: &Tally, time: Picos, sabres: Counters) -> Self {
        let each = |picos: u64| picos as f64 / 1e3 / tally.operations.max(1) as f64;
        Self {
            operations: tally.operations,
            refused: tally.refused,
            torn: tally.torn,
            events: tally.events,
            time: time.0 as f64 / 1e3,
            mean: each(tally.total),
            framework: each(tally.framework),
            transfer: each(tally.transfer),
            check: each(tally.check),
            application: each(tally.application),
            latency: tally.latency.clone(),
            sabres,
        }
    }

    /// Millions of operations in a second.
    pub fn mops(&self) -> f64 {
        self.operations as f64 / self.time * 1e3
    }

    /// The longest operation.
    pub const fn longest(&self) -> Nanos {
        self.latency.longest()
    }
}
