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
