//! How long something took, of many: a histogram whose buckets double.
//!
//! What must always hold: a time is in the first bucket that it does not exceed; histograms of several nodes add up to that of all.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use wire::Nanos;

/// The first bucket has what took 2^8 ns at most.
const SHORTEST: u32 = 8;
/// Buckets: the last but one has what took 2^34 ns at most, which is 17 seconds, and the last one whatever took longer.
pub const BUCKETS: usize = 28;

/// A histogram that several threads add to.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

/// What a histogram has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Times {
    /// How many took as long as [`Times::at_most`] says of their bucket, and longer than those before.
    pub buckets: [u64; BUCKETS],
    /// What they took together.
    pub sum: Nanos,
}

fn bucket(time: Nanos) -> usize {
    // Of the smallest power of two that is not less.
    let power = u64::BITS - time.0.saturating_sub(1).leading_zeros();
    (power.saturating_sub(SHORTEST) as usize).min(BUCKETS - 1)
}

impl Histogram {
    pub(super) fn add(&self, time: Nanos) {
        self.buckets[bucket(time)].fetch_add(1, Relaxed);
        self.sum.fetch_add(time.0, Relaxed);
    }

    pub(super) fn times(&self) -> Times {
        Times {
            buckets: std::array::from_fn(|at| self.buckets[at].load(Relaxed)),
            sum: Nanos(self.sum.load(Relaxed)),
        }
    }
}

impl Times {
    /// Words that it takes.
    pub const WORDS: usize = BUCKETS + 1;

    /// What a bucket has took so long at most. None: the last one, of whatever took longer.
    pub fn at_most(bucket: usize) -> Option<Nanos> {
        (bucket < BUCKETS - 1).then(|| Nanos(1 << (SHORTEST as usize + bucket)))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Adds those of another one.
    pub fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(all, more)| *all = all.wrapping_add(more));
        self.sum.0 = self.sum.0.wrapping_add(other.sum.0);
    }

    /// So many of a thousand took at most this long, rounded up to the end of a bucket. None if there are none; the largest number if it
    /// was longer than all buckets.
    pub fn permille(&self, many: u64) -> Option<Nanos> {
        let (count, mut seen) = (self.count(), 0);
        let wanted = (u128::from(count) * u128::from(many)).div_ceil(1000).max(1);
        let at = self.buckets.iter().position(|more| {
            seen += u128::from(*more);
            seen >= wanted
        });
        at.map(|at| Self::at_most(at).unwrap_or(Nanos::MAX))
    }

    /// As words.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        self.buckets.into_iter().chain([self.sum.0])
    }

    /// Of words, as they were written.
    pub fn of_words(words: &[u64; Self::WORDS]) -> Self {
        let mut buckets = [0; BUCKETS];
        buckets.copy_from_slice(&words[..BUCKETS]);
        Self { buckets, sum: Nanos(words[BUCKETS]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_it_does_not_exceed() {
        for at in 0..BUCKETS - 1 {
            let most = Times::at_most(at).expect("it has an end");
            assert_eq!((bucket(most), bucket(Nanos(most.0 + 1))), (at, at + 1), "{most}");
        }
        assert_eq!((bucket(Nanos(0)), bucket(Nanos(1)), bucket(Nanos::MAX)), (0, 0, BUCKETS - 1));
        assert_eq!(Times::at_most(BUCKETS - 1), None);
        assert_eq!(Times::at_most(BUCKETS - 2), Some(Nanos(1 << 34)));
    }

    #[test]
    fn histograms_add_up_and_survive_as_words() {
        let histograms = [Histogram::default(), Histogram::default()];
        for time in 0..100 {
            histograms[time % 2].add(Nanos(time as u64 * 1000));
        }
        let mut all = histograms[0].times();
        all.add(&histograms[1].times());
        assert_eq!((all.count(), all.sum), (100, Nanos(4_950_000)));
        let words: Vec<u64> = all.words().collect();
        assert_eq!(Times::of_words(words[..].try_into().expect("so many")), all);
    }

    #[test]
    fn what_most_took_is_at_most_twice_as_much_as_it_was() {
        let histogram = Histogram::default();
        assert_eq!(histogram.times().permille(500), None);
        (0..990).for_each(|_| histogram.add(Nanos(1000)));
        (0..9).for_each(|_| histogram.add(Nanos(1_000_000)));
        let times = histogram.times();
        assert_eq!((times.permille(500), times.permille(990)), (Some(Nanos(1024)), Some(Nanos(1024))));
        assert_eq!((times.permille(995), times.permille(1000)), (Some(Nanos(1 << 20)), Some(Nanos(1 << 20))));
        histogram.add(Nanos(1 << 40));
        assert_eq!(histogram.times().permille(1000), Some(Nanos::MAX));
    }
}
