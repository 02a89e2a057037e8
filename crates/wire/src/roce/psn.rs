//! Packet sequence numbers and queue pair numbers: 24 bits each, in every packet's BTH.
//!
//! What must always hold: the value fits 24 bits, and sequence numbers are compared by their distance on the circle,
//! never by size.

use core::fmt;

const MASK: u32 = (1 << 24) - 1;

/// A packet sequence number, modulo 2^24.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Psn(u32);

impl Psn {
    /// How far apart two numbers can be and still be told which is earlier.
    pub const HALF: i32 = 1 << 23;

    /// The number with these low 24 bits.
    pub const fn new(bits: u32) -> Self {
        Self(bits & MASK)
    }

    /// The number as it is on the wire.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `packets` later.
    #[must_use]
    pub const fn plus(self, packets: u32) -> Self {
        Self(self.0.wrapping_add(packets) & MASK)
    }

    /// The number just before.
    #[must_use]
    pub const fn before(self) -> Self {
        Self(self.0.wrapping_sub(1) & MASK)
    }

    /// How many packets this one is after `earlier`: negative if it is before it; from -2^23 to 2^23 - 1.
    pub const fn since(self, earlier: Self) -> i32 {
        // The difference's 24 bits, sign-extended.
        ((self.0.wrapping_sub(earlier.0) << 8) as i32) >> 8
    }

    /// True if it is one of the `packets` numbers from `first` on.
    pub const fn is_within(self, first: Self, packets: u32) -> bool {
        self.0.wrapping_sub(first.0) & MASK < packets
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PSN {}", self.0)
    }
}

/// The number of a queue pair at its NIC, 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct QpNumber(u32);

impl QpNumber {
    /// The number with these low 24 bits.
    pub const fn new(bits: u32) -> Self {
        Self(bits & MASK)
    }

    /// The number as it is on the wire.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for QpNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue pair {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_taken_on_the_circle() {
        let last = Psn::new(MASK);
        assert_eq!(last.plus(1), Psn::new(0));
        assert_eq!(Psn::new(0).before(), last);
        assert_eq!(Psn::new(3).since(last), 4);
        assert_eq!(last.since(Psn::new(3)), -4);
        assert_eq!(Psn::new(1 << 23).since(Psn::new(0)), -Psn::HALF, "half way round counts as earlier");
        assert_eq!(Psn::new((1 << 23) - 1).since(Psn::new(0)), Psn::HALF - 1);
    }

    #[test]
    fn a_window_may_lie_across_zero() {
        let first = Psn::new(MASK - 1);
        assert!(first.is_within(first, 1) && Psn::new(1).is_within(first, 4));
        assert!(!Psn::new(2).is_within(first, 4) && !first.before().is_within(first, 4));
        assert!(!first.is_within(first, 0));
    }
}
