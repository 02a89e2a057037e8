//! Times of single accesses, as a histogram that processes can tell each other.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::rounds::median;

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

    /// Times of `access`, done so many times, one after the other.
    pub(crate) fn timed<E>(times: u64, mut access: impl FnMut(u64) -> Result<(), E>) -> Result<Samples, E> {
        let mut recorder = Self::new();
        let began = Instant::now();
        let mut last = began;
        for at in 0..times {
            access(at)?;
            let now = Instant::now();
            recorder.record(now - last);
            last = now;
        }
        Ok(recorder.samples(last - began))
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

/// Rounds of one kind of access.
pub(crate) struct Rounds {
    pub(crate) all: Recorder,
    means: Vec<f64>,
}

impl Rounds {
    pub(crate) fn new() -> Self {
        Self { all: Recorder::new(), means: Vec::new() }
    }

    /// One more.
    pub(crate) fn add(&mut self, samples: &Samples) {
        self.all.add(samples);
        self.means.push(samples.mean());
    }

    /// Nanoseconds of an access in the median round.
    pub(crate) fn median(&self) -> f64 {
        median(self.means.clone())
    }
}

impl Samples {
    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Nanoseconds for each, on the average.
    pub(crate) fn mean(&self) -> f64 {
        self.took_nanos as f64 / self.count as f64
    }

    /// How many there were in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / (self.took_nanos as f64 / 1e9).max(1e-9)
    }
}
