//! Random numbers that follow from a seed: SplitMix64, for everything that draws.
//!
//! What must always hold: the numbers of a seed are the same everywhere and for ever. Failing runs are named by their seeds, and
//! tests look for what is rare at the seeds where it is.
#![no_std]
#![forbid(unsafe_code)]

/// 2^64 divided by the golden ratio. Multiples of it are spread evenly over all words.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64: a bijection of the words in which every bit of the input reaches every bit of the output.
#[inline]
pub const fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A stream of random numbers. Bounded ones are scaled down from all 64 bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `bound`.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// True so many times in a thousand.
    pub const fn per_mille(&mut self, times: u32) -> bool {
        self.below(1000) < times as u64
    }
}

/// The same stream, but bounded numbers are remainders: many tests have found their seeds with these.
#[derive(Clone, Debug)]
pub struct Dice(Random);

impl Dice {
    /// The stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// 64 random bits.
    pub const fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// The number of one of so many things.
    pub const fn pick(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// True so many times in a hundred.
    pub const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// True so many times in a thousand.
    pub const fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }
}

#[cfg(test)]
mod tests;
