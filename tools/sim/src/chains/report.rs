//! What a run gave.

use switch::chains::Counters;
use wire::Nanos;

use crate::rack::Histogram;

/// Round trips of operations.
#[derive(Clone, Debug, Default)]
pub struct Trips {
    /// How many operations took as many as their index says.
    counts: Vec<u64>,
}

impl Trips {
    pub(super) fn record(&mut self, trips: u32) {
        let index = trips as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Operations.
    pub fn operations(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// On average.
    pub fn mean(&self) -> f64 {
        let all: u64 = (0..).zip(&self.counts).map(|(trips, count)| trips * count).sum();
        all as f64 / self.operations().max(1) as f64
    }

    /// What so many of a thousand operations did not exceed.
    pub fn per_mille(&self, per_mille: u64) -> u64 {
        let rank = (self.operations() * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.unwrap_or(0) as u64
    }
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) operations: u64,
    pub(super) events: u64,
    pub(super) calls: u64,
    /// Operations that failed.
    pub(super) failed: u64,
    /// Gets of something older than what was acknowledged before, and puts whose entry is in no chain, or behind such.
    pub(super) wrong: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) dropped: u64,
    pub(super) reconnected: u64,
    pub(super) gets: Trips,
    pub(super) puts: Trips,
    pub(super) latency: Histogram,
}

/// What a run gave, in the time in which it was counted.
#[derive(Clone, Debug)]
pub struct ChainsReport {
    /// Operations that are over.
    pub operations: u64,
    /// How long that took.
    pub time: Nanos,
    /// Events of the simulation.
    pub events: u64,
    /// Calls to the metadata server.
    pub calls: u64,
    /// Operations that could not be done.
    pub failed: u64,
    /// Gets that were stale, appends that were lost, or went astray: none, or something is broken.
    pub wrong: u64,
    /// Packets of queue pairs that came to the switch.
    pub packets: u64,
    /// Bytes above Ethernet of all that came there.
    pub bytes: u64,
    /// Packets that were lost in a switch that was down, or were dropped by its program.
    pub dropped: u64,
    /// Connections that broke, and began anew.
    pub reconnected: u64,
    /// Compare-and-swaps that appended, since the beginning.
    pub appended: u64,
    /// And those that found another word.
    pub refused: u64,
    /// Round trips of gets.
    pub gets: Trips,
    /// And of puts.
    pub puts: Trips,
    /// How long operations took.
    pub latency: Histogram,
    /// The share of the time since the beginning in which the server's NIC executed atomics.
    pub atomics: f64,
    /// In which its link to the rack was used,
    pub link: f64,
    /// and the metadata server's processor.
    pub metadata: f64,
    /// What the program in the switch has counted, since the beginning.
    pub steering: Option<Counters>,
}

impl ChainsReport {
    /// Millions of operations in a second.
    pub fn mops(&self) -> f64 {
        self.operations as f64 / self.time.0 as f64 * 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_round_trips_are_exact() {
        let mut trips = Trips::default();
        (0..98).for_each(|_| trips.record(2));
        [3, 9].into_iter().for_each(|more| trips.record(more));
        assert_eq!([500, 980, 990, 1000].map(|per_mille| trips.per_mille(per_mille)), [2, 2, 3, 9]);
        assert_eq!((trips.operations(), trips.mean()), (100, 2.08));
    }
}
