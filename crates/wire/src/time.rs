//! Time as the protocol sees it: an integer count of nanoseconds that a driver hands in with every input.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A moment (nanoseconds since the rack started) or a span of time (nanoseconds).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of the rack, or no time at all.
    pub const ZERO: Self = Self(0);
    /// Never.
    pub const MAX: Self = Self(u64::MAX);

    /// So many microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// So many milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// The span from `earlier` to here; zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, span: Self) {
        *self = *self + span;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self(self.0 - earlier.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        match ns {
            0..10_000 => write!(f, "{ns} ns"),
            10_000..10_000_000 => write!(f, "{} us", ns / 1_000),
            10_000_000..10_000_000_000 => write!(f, "{} ms", ns / 1_000_000),
            _ => write!(f, "{} s", ns / 1_000_000_000),
        }
    }
}
