//! Chance, for the tests of several crates, which take this file in by its path: SplitMix64.
//!
//! What must always hold: the numbers of a seed are the same everywhere and for ever, for tests look for what is rare at the seeds where it is.
#![allow(dead_code, reason = "each test uses its part")]

/// A small generator: one seed, one run.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below that.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// The number of one of so many things.
    pub(crate) const fn pick(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    pub(crate) const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) const fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }
}
