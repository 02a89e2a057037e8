//! Chance, from a seed. It runs wherever a check draws.
//!
//! What must always hold: a seed gives the same numbers everywhere and for ever, for failing runs are named by theirs.

/// A stream of random numbers, of which bounded ones are places in lists.
#[derive(Clone, Debug)]
pub struct Random(random::Random);

impl Random {
    /// The stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(random::Random::new(seed))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    /// True so many times in a thousand.
    pub fn per_mille(&mut self, times: u32) -> bool {
        self.0.per_mille(times)
    }
}
