//! Rates, and the time that something takes at a rate.
//!
//! All hardware models compute with them. What must always hold: time is counted in picoseconds inside of the
//! models (a byte at 100 Gb/s takes 80 of them), and rounded up to nanoseconds only where it leaves them. So
//! rounding never adds up, and never lets a rate be exceeded.

use wire::Nanos;

/// A span or moment in picoseconds. 64 bits hold 213 days of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Picos(pub(crate) u64);

impl Picos {
    /// The beginning.
    pub(crate) const ZERO: Self = Self(0);

    /// The first whole nanosecond that is not earlier.
    pub(crate) const fn round_up(self) -> Nanos {
        Nanos(self.0.div_ceil(1_000))
    }

    /// This much later.
    pub(crate) const fn plus(self, span: Self) -> Self {
        Self(self.0 + span.0)
    }

    /// The span from `earlier` to here; nothing if `earlier` is later.
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl From<Nanos> for Picos {
    fn from(time: Nanos) -> Self {
        Self(time.0 * 1_000)
    }
}

/// How fast bytes pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bandwidth {
    femtoseconds_per_byte: u64,
}

impl Bandwidth {
    /// So many megabits in a second.
    pub const fn megabits(per_second: u64) -> Self {
        assert!(0 < per_second && per_second <= 8_000_000_000, "no bandwidth, or none that can be counted");
        Self { femtoseconds_per_byte: (8_000_000_000 + per_second / 2) / per_second }
    }

    /// Megabits in a second, rounded.
    pub const fn to_megabits(self) -> u64 {
        (8_000_000_000 + self.femtoseconds_per_byte / 2) / self.femtoseconds_per_byte
    }

    /// How long these bytes take to pass.
    pub const fn span(self, bytes: u64) -> Nanos {
        self.picos(bytes).round_up()
    }

    pub(crate) const fn picos(self, bytes: u64) -> Picos {
        Picos((bytes * self.femtoseconds_per_byte).div_ceil(1_000))
    }

    /// How many bytes pass in this time.
    pub(super) const fn bytes(self, time: Picos) -> u64 {
        time.0.saturating_mul(1_000) / self.femtoseconds_per_byte
    }
}

/// How many messages a device handles, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageRate {
    picoseconds_per_message: u64,
}

impl MessageRate {
    /// So many million messages in a second.
    pub const fn millions(per_second: u64) -> Self {
        assert!(0 < per_second && per_second <= 1_000_000, "no rate, or none that can be counted");
        Self { picoseconds_per_message: 1_000_000u64.div_ceil(per_second) }
    }

    /// Millions of messages in a second, rounded.
    pub const fn to_millions(self) -> u64 {
        (1_000_000 + self.picoseconds_per_message / 2) / self.picoseconds_per_message
    }

    pub(crate) const fn picos(self) -> Picos {
        Picos(self.picoseconds_per_message)
    }
}
