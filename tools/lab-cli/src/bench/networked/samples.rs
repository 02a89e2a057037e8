//! Times of single accesses.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Longer times count as this long.
const MOST_NANOS: u64 = 60_000_000_000;

/// Times, as one process tells them to another: the values that occurred, and how often; and how long all took.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Samples {
    values: Vec<(u64, u64)>,
    count: u64,
    took_nanos: u64,
}

/// Times while they are taken.
pub(crate) struct Recorder(Histogram<u64>);

impl Recorder {
    pub(crate) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, MOST_NANOS, 3).expect("3 digits are possible"))
    }

    /// One took so long.
    pub(crate) fn record(&mut self, took: Duration) {
        self.0.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(MOST_NANOS));
    }

    /// Adds a round.
    pub(crate) fn add(&mut self, samples: &Samples) {
        samples.values.iter().for_each(|(value, count)| self.0.saturating_record_n(*value, *count));
    }

    /// All of it, which took so long.
    pub(crate) fn samples(&self, took: Duration) -> Samples {
        Samples {
            values: self.0.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value())).collect(),
            count: self.0.len(),
            took_nanos: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// The time that this part of all did not exceed.
    pub(crate) fn quantile(&self, part: f64) -> u64 {
        self.0.value_at_quantile(part)
    }
}

impl Samples {
    /// Nanoseconds for each, on the average.
    pub(in crate::bench) fn mean(&self) -> f64 {
        self.took_nanos as f64 / self.count as f64
    }

    /// How many there were in a second.
    pub(in crate::bench) fn rate(&self) -> f64 {
        self.count as f64 / (self.took_nanos as f64 / 1e9).max(1e-9)
    }
}
