//! Runs of a seed.

use wire::LockRules;

use super::{LockRack, Plan, Report};
use crate::rack::Failure;

/// What a run does before it may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Steps.
    pub steps: usize,
}

impl Effort {
    /// What the tests ask of every seed.
    pub const TEST: Self = Self { steps: 3000 };
    /// What `rackmem fuzz --locks` does.
    pub const FUZZ: Self = Self { steps: 40_000 };
}

impl Report {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.entered += other.entered;
        self.busy += other.busy;
        self.cancelled += other.cancelled;
        self.freed += other.freed;
        self.reclaimed += other.reclaimed;
        self.given_up += other.given_up;
        self.refused += other.refused;
        self.moves += other.moves;
        self.denied += other.denied;
        self.evicted += other.evicted;
        self.repeated += other.repeated;
        self.lost += other.lost;
        self.down += other.down;
        self.stops.add(&other.stops);
        self.passed = self.passed.max(other.passed);
        self.reigns_before = self.reigns_before.max(other.reigns_before);
        self.faults.add(&other.faults);
    }
}

/// Runs one plan from one seed until the effort is made, and then until nothing is under way; a panic is a failure like
/// any other.
///
/// # Errors
/// What went wrong.
pub fn run_seed<R: LockRules>(plan: Plan, seed: u64, effort: Effort) -> Result<Report, Failure> {
    let run = || {
        let mut rack = LockRack::<R>::new(plan, seed);
        for step in 0..effort.steps {
            rack.step(false).map_err(|what| Failure::Wrong(format!("step {step}: {what}")))?;
        }
        rack.settle().map_err(|what| match what.starts_with("stuck") {
            true => Failure::Stuck(what),
            false => Failure::Wrong(what),
        })?;
        Ok(rack.report())
    };
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Failure::Crashed(text.unwrap_or_else(|| "a panic without a message".to_owned())))
    })
}
