//! What the ALUs of a stage do to PHV fields: the instructions of actions.
//!
//! The instructions of one action run side by side, as one wide instruction: none sees what another of them
//! writes.

use super::phv::{Field, Phv};

/// One instruction on PHV fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Primitive {
    /// A constant.
    Set {
        /// Written.
        to: Field,
        /// What.
        value: u64,
    },
    /// Another field's value.
    Copy {
        /// Written.
        to: Field,
        /// Read.
        from: Field,
    },
    /// Bitwise and.
    And {
        /// Written.
        to: Field,
        /// One operand.
        a: Field,
        /// The other.
        b: Field,
    },
    /// Bitwise or.
    Or {
        /// Written.
        to: Field,
        /// One operand.
        a: Field,
        /// The other.
        b: Field,
    },
    /// Sum, modulo 2^64.
    Add {
        /// Written.
        to: Field,
        /// One operand.
        a: Field,
        /// The other.
        b: Field,
    },
    /// 1 if two fields are equal, else 0.
    Equals {
        /// Written.
        to: Field,
        /// One operand.
        a: Field,
        /// The other.
        b: Field,
    },
    /// 1 if a field is 0, else 0.
    IsZero {
        /// Written.
        to: Field,
        /// Read.
        from: Field,
    },
    /// One of two fields.
    Select {
        /// Written.
        to: Field,
        /// Picks `yes` if it is not 0.
        by: Field,
        /// Read if so.
        yes: Field,
        /// Read if not.
        no: Field,
    },
    /// A number below `buckets` from the stage's hash unit: see [`spread`].
    Hash {
        /// Written.
        to: Field,
        /// The key.
        from: Field,
        /// How many numbers.
        buckets: u64,
    },
}

/// 2^64 divided by the golden ratio.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads keys over `buckets` numbers. Multiplicative hashing by the golden ratio puts keys that differ by a
/// constant step, like the tags of consecutive blocks, far apart and evenly; its upper half is scaled down to
/// the number of buckets, which so need not be a power of two.
#[inline]
pub const fn spread(key: u64, buckets: u64) -> u64 {
    let mixed = key.wrapping_mul(GOLDEN) >> 32;
    (mixed * (buckets & 0xffff_ffff)) >> 32
}

impl Primitive {
    /// The field that it writes.
    pub const fn writes(self) -> Field {
        match self {
            Self::Set { to, .. }
            | Self::Copy { to, .. }
            | Self::And { to, .. }
            | Self::Or { to, .. }
            | Self::Add { to, .. }
            | Self::Equals { to, .. }
            | Self::IsZero { to, .. }
            | Self::Select { to, .. }
            | Self::Hash { to, .. } => to,
        }
    }

    /// The fields that it reads.
    pub fn reads(self) -> impl Iterator<Item = Field> {
        let fields = match self {
            Self::Set { .. } => [None; 3],
            Self::Copy { from, .. } | Self::IsZero { from, .. } | Self::Hash { from, .. } => {
                [Some(from), None, None]
            }
            Self::And { a, b, .. }
            | Self::Or { a, b, .. }
            | Self::Add { a, b, .. }
            | Self::Equals { a, b, .. } => [Some(a), Some(b), None],
            Self::Select { by, yes, no, .. } => [Some(by), Some(yes), Some(no)],
        };
        fields.into_iter().flatten()
    }

    #[inline(always)]
    pub(super) fn run(&self, phv: &mut Phv) {
        let value = match *self {
            Self::Set { value, .. } => value,
            Self::Copy { from, .. } => phv.get(from),
            Self::And { a, b, .. } => phv.get(a) & phv.get(b),
            Self::Or { a, b, .. } => phv.get(a) | phv.get(b),
            Self::Add { a, b, .. } => phv.get(a).wrapping_add(phv.get(b)),
            Self::Equals { a, b, .. } => u64::from(phv.get(a) == phv.get(b)),
            Self::IsZero { from, .. } => u64::from(phv.get(from) == 0),
            Self::Select { by, yes, no, .. } => {
                if phv.get(by) != 0 {
                    phv.get(yes)
                } else {
                    phv.get(no)
                }
            }
            Self::Hash { from, buckets, .. } => spread(phv.get(from), buckets),
        };
        phv.set(self.writes(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_primitive_computes_what_it_says() {
        let [to, a, b, c] = [0, 1, 2, 3].map(Field);
        let run = |primitive: Primitive| {
            let mut phv = Phv::new();
            for (field, value) in [(a, 0b1100), (b, 0b1010), (c, 0)] {
                phv.set(field, value);
            }
            primitive.run(&mut phv);
            phv.get(to)
        };
        assert_eq!(run(Primitive::Set { to, value: 9 }), 9);
        assert_eq!(run(Primitive::Copy { to, from: a }), 0b1100);
        assert_eq!(run(Primitive::And { to, a, b }), 0b1000);
        assert_eq!(run(Primitive::Or { to, a, b }), 0b1110);
        assert_eq!(run(Primitive::Add { to, a, b }), 22);
        assert_eq!(run(Primitive::Equals { to, a, b }), 0);
        assert_eq!(run(Primitive::Equals { to, a, b: a }), 1);
        assert_eq!(run(Primitive::IsZero { to, from: c }), 1);
        assert_eq!(run(Primitive::IsZero { to, from: a }), 0);
        assert_eq!(run(Primitive::Select { to, by: a, yes: b, no: c }), 0b1010);
        assert_eq!(run(Primitive::Select { to, by: c, yes: b, no: a }), 0b1100);
        assert_eq!(run(Primitive::Hash { to, from: a, buckets: 1 }), 0);
    }

    #[test]
    fn consecutive_blocks_spread_evenly() {
        for shift in [6, 12, 20] {
            let sets = 1000u64;
            let mut load = alloc::vec![0u32; usize::try_from(sets).unwrap()];
            for block in 0..7 * sets {
                load[usize::try_from(spread(!(block << shift), sets)).unwrap()] += 1;
            }
            let fullest = load.iter().max().unwrap();
            assert!(*fullest <= 12, "{fullest} of 7000 blocks of 2^{shift} bytes in one of {sets} sets");
        }
    }
}
