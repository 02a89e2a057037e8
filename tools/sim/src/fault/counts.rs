//! What the rules have done, by verdict.
//!
//! Kept by the rules of a run, read when it ends: a run that was to be faulty and counts nothing has tested
//! nothing.

use super::Verdict;

/// Numbers of verdicts. A message on which several rules decide counts once for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Copies that got through all rules, changed or not.
    pub passed: u64,
    /// Copies that were lost, other than by damage.
    pub dropped: u64,
    /// Delays.
    pub delayed: u64,
    /// Duplicates made.
    pub duplicated: u64,
    /// Copies that were damaged, and so lost.
    pub corrupted: u64,
}

impl Counts {
    /// Nothing yet.
    pub(super) const NONE: Self = Self { passed: 0, dropped: 0, delayed: 0, duplicated: 0, corrupted: 0 };

    pub(super) const fn count(&mut self, verdict: Verdict) {
        match verdict {
            // Only what gets through every rule has passed.
            Verdict::Pass => {}
            Verdict::Drop => self.dropped += 1,
            Verdict::Delay(_) => self.delayed += 1,
            Verdict::Duplicate(_) => self.duplicated += 1,
            Verdict::Corrupt => self.corrupted += 1,
        }
    }

    /// All faults together.
    pub const fn faults(&self) -> u64 {
        self.dropped + self.delayed + self.duplicated + self.corrupted
    }
}
