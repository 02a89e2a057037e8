//! The machine's monotonic clock, which all processes of a command share: what one process saw before another one did
//! has the earlier time. (The standard library's `Instant` reads the same clock, but its readings cannot be told to
//! another process.)

use std::ops::{Add, Sub};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A reading of the clock: nanoseconds since some moment that is the same for the whole machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Moment(u64);

impl Moment {
    /// The time now.
    #[inline]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        Self(now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned())
    }

    /// Nanoseconds since the clock's beginning.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The moment so many nanoseconds after the clock's beginning.
    pub const fn of_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
}

impl Sub for Moment {
    type Output = Duration;

    /// The time between; nothing, if the other one is later.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + u64::try_from(time.as_nanos()).expect("nobody waits for centuries"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_forward_at_the_rate_of_the_standard_librarys() {
        let (ours, theirs) = (Moment::now(), std::time::Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let (theirs, ours) = (theirs.elapsed(), Moment::now() - ours);
        assert!(ours >= theirs, "{ours:?} around {theirs:?}");
        assert!(theirs >= Duration::from_millis(20));
    }
}
