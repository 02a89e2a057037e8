//! How long operations took, per kind.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::workload::{KINDS, Mix, OperationKind};

/// Longer operations count as this long.
const MOST_NANOS: u64 = 100_000_000_000;
/// Significant decimal digits. Two keep a histogram at 30 KiB, so that it stays in cache beside the data that
/// is measured; percentiles are then right to 1 %.
const DIGITS: u8 = 2;

/// The latencies of a process as it tells them to another: of each kind the values that occurred, and how often.
pub type Recorded = [Vec<(u64, u64)>; KINDS];

/// The latencies of one client, or of all of them together.
#[derive(Clone, Debug)]
pub struct Latencies([Option<Histogram<u64>>; KINDS]);

/// What is reported of the latencies of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Percentiles {
    /// How many operations.
    pub count: u64,
    /// The mean.
    pub mean: Duration,
    /// Half of them took at most so long.
    pub p50: Duration,
    /// 99 of 100.
    pub p99: Duration,
    /// 999 of 1000.
    pub p999: Duration,
    /// All of them.
    pub max: Duration,
}

impl Latencies {
    /// None yet, of the kinds that occur in a mix.
    pub fn new(mix: &Mix) -> Self {
        Self(OperationKind::ALL.map(|kind| {
            (mix.share(kind) > 0.0).then(|| {
                Histogram::new_with_bounds(1, MOST_NANOS, DIGITS).expect("these bounds and digits are valid")
            })
        }))
    }

    /// One operation took so long.
    pub fn record(&mut self, kind: OperationKind, took: Duration) {
        let histogram = self.0[kind.index()].as_mut().expect("only kinds of the mix are recorded");
        histogram.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(MOST_NANOS));
    }

    /// Adds those of another client of the same run.
    pub fn add(&mut self, other: &Self) {
        for (mine, others) in self.0.iter_mut().zip(&other.0) {
            if let (Some(mine), Some(others)) = (mine, others) {
                mine.add(others).expect("histograms of one run have the same bounds");
            }
        }
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.0.iter_mut().flatten().for_each(Histogram::reset);
    }

    /// For another process.
    pub fn recorded(&self) -> Recorded {
        let values = |histogram: &Option<Histogram<u64>>| {
            let values = histogram.iter().flat_map(Histogram::iter_recorded);
            values.map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
        };
        self.0.each_ref().map(values)
    }

    /// From another process, of the kinds that occur in a mix.
    pub fn of_recorded(mix: &Mix, recorded: &Recorded) -> Self {
        let mut all = Self::new(mix);
        for (histogram, values) in all.0.iter_mut().zip(recorded) {
            for (value, count) in values {
                if let Some(histogram) = histogram {
                    histogram.saturating_record_n(*value, *count);
                }
            }
        }
        all
    }

    /// Operations of all kinds.
    pub fn count(&self) -> u64 {
        self.0.iter().flatten().map(Histogram::len).sum()
    }

    /// What is reported, of the kinds that happened.
    pub fn percentiles(&self) -> Vec<(OperationKind, Percentiles)> {
        let at = Duration::from_nanos;
        OperationKind::ALL
            .into_iter()
            .zip(&self.0)
            .filter_map(|(kind, histogram)| Some((kind, histogram.as_ref().filter(|h| !h.is_empty())?)))
            .map(|(kind, histogram)| {
                let percentiles = Percentiles {
                    count: histogram.len(),
                    mean: Duration::from_secs_f64(histogram.mean() / 1e9),
                    p50: at(histogram.value_at_quantile(0.5)),
                    p99: at(histogram.value_at_quantile(0.99)),
                    p999: at(histogram.value_at_quantile(0.999)),
                    max: at(histogram.max()),
                };
                (kind, percentiles)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_told_to_another_process_are_the_same_there() {
        let mix = Mix::new(1.0, 1.0, 0.0, 0.0);
        let mut here = Latencies::new(&mix);
        for nanos in [1, 100, 101, 5_000, 5_000, 123_456_789] {
            here.record(OperationKind::Read, Duration::from_nanos(nanos));
        }
        let there = Latencies::of_recorded(&mix, &here.recorded());
        assert_eq!(there.percentiles(), here.percentiles());
        assert_eq!(there.count(), 6);
        here.clear();
        assert_eq!(here.count(), 0);
    }

    #[test]
    fn percentiles_are_right_to_a_hundredth_over_all_clients() {
        let mix = Mix::new(1.0, 1.0, 0.0, 0.0);
        let (mut all, mut one, mut other) =
            (Latencies::new(&mix), Latencies::new(&mix), Latencies::new(&mix));
        for micros in 1..=1000 {
            let client = if micros % 2 == 0 { &mut one } else { &mut other };
            client.record(OperationKind::Read, Duration::from_micros(micros));
        }
        one.record(OperationKind::Update, Duration::from_secs(3600));
        all.add(&one);
        all.add(&other);
        assert_eq!(all.count(), 1001);
        let [(OperationKind::Read, reads), (OperationKind::Update, updates)] = all.percentiles()[..] else {
            panic!("two kinds happened")
        };
        assert_eq!((reads.count, updates.count), (1000, 1));
        for (is, should) in [(reads.p50, 500), (reads.p99, 990), (reads.p999, 999), (reads.max, 1000)] {
            let should = Duration::from_micros(should);
            assert!(is.abs_diff(should) <= should / 100, "{is:?} for {should:?}");
        }
        assert!(updates.max >= Duration::from_secs(99), "an hour counts as the longest that can be counted");
    }
}
