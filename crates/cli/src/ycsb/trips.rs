//! How many round trips operations took, per kind, where the store counts them.

use serde::{Deserialize, Serialize};

use super::workload::{KINDS, OperationKind};

/// More count as so many.
const MOST: usize = 1023;

/// The round trips of one client's operations, or of those of all: how often it were so many, by kind.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Trips([Vec<u64>; KINDS]);

/// What is reported of those of one kind.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct TripCounts {
    pub(crate) mean: f64,
    pub(crate) p50: usize,
    pub(crate) p99: usize,
    pub(crate) max: usize,
}

impl Trips {
    /// One operation took so many.
    pub(crate) fn record(&mut self, kind: OperationKind, trips: u32) {
        let (counts, at) = (&mut self.0[kind.index()], (trips as usize).min(MOST));
        if counts.len() <= at {
            counts.resize(at + 1, 0);
        }
        counts[at] += 1;
    }

    /// Adds those of another client.
    pub(crate) fn add(&mut self, other: &Self) {
        for (mine, others) in self.0.iter_mut().zip(&other.0) {
            mine.resize(mine.len().max(others.len()), 0);
            mine.iter_mut().zip(others).for_each(|(mine, others)| *mine += others);
        }
    }

    /// Those of a kind; none, if nobody counted.
    pub(crate) fn of(&self, kind: OperationKind) -> Option<TripCounts> {
        let counts = &self.0[kind.index()];
        let all: u64 = counts.iter().sum();
        let sum: u64 = counts.iter().zip(0..).map(|(count, trips)| count * trips).sum();
        // The fewest that so many of the operations did not exceed.
        let at = |share: f64| {
            let mut left = (all as f64 * share).ceil().max(1.0) as u64;
            counts.iter().position(|count| {
                left = left.saturating_sub(*count);
                left == 0
            })
        };
        let max = counts.iter().rposition(|count| *count > 0)?;
        Some(TripCounts { mean: sum as f64 / all as f64, p50: at(0.5)?, p99: at(0.99)?, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reported_is_what_was_counted_by_all_clients() {
        let (mut one, mut other) = (Trips::default(), Trips::default());
        (0..97).for_each(|_| one.record(OperationKind::Read, 1));
        [2, 5, 9].into_iter().for_each(|trips| other.record(OperationKind::Read, trips));
        other.record(OperationKind::Update, 1_000_000);
        one.add(&other);
        let reads = one.of(OperationKind::Read).unwrap();
        assert_eq!((reads.p50, reads.p99, reads.max), (1, 5, 9));
        assert!((reads.mean - 1.13).abs() < 1e-9);
        assert_eq!(one.of(OperationKind::Update).map(|trips| trips.max), Some(MOST));
        assert_eq!(one.of(OperationKind::Insert), None);
    }
}
