//! One run of a seed that was worth it: so many operations, and so many faults, or it goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Plan, Rack, Report, World};

/// What a run must have met before it may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Steps.
    pub steps: usize,
    /// Operations of application threads that took place.
    pub operations: u64,
    /// Packets that something happened to, and places that stopped or started.
    pub faults: u64,
}

impl Effort {
    /// What `rackmem fuzz` asks of every seed.
    pub const FUZZ: Self = Self { steps: 40_000, operations: 2_000, faults: 20 };

    /// After so many times its steps, a run that has not met the rest is stuck.
    const PATIENCE: usize = 20;

    /// So many steps, whatever they come to.
    pub const fn steps(steps: usize) -> Self {
        Self { steps, operations: 0, faults: 0 }
    }
}

/// How a run went wrong.
#[derive(Clone, Debug)]
pub enum Failure {
    /// A property did not hold.
    Wrong(String),
    /// Something was still in flight, or the work did not get on, after a long time.
    Stuck(String),
    /// A machine panicked.
    Crashed(String),
}

impl Failure {
    /// What happened.
    pub fn what(&self) -> &str {
        match self {
            Self::Wrong(what) | Self::Stuck(what) | Self::Crashed(what) => what,
        }
    }
}

impl<W: World<M, Message = M>, M: Copy> Rack<W, M> {
    /// Runs one plan from one seed until the effort is made, and then until nothing is in flight. A panic is a failure like
    /// any other; without a hook of the caller's, it also prints what panics print.
    ///
    /// # Errors
    /// What went wrong.
    pub fn run_seed(plan: Plan<W::Plan>, seed: u64, effort: Effort) -> Result<Report<W::Seen>, Failure> {
        let run = || {
            let mut rack = Self::new(plan, seed);
            rack.run(effort).map(|()| rack.report())
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(Failure::Crashed(text.unwrap_or_else(|| "a panic without a message".to_owned())))
        })
    }

    /// Runs until the effort is made, and then until nothing is in flight.
    fn run(&mut self, effort: Effort) -> Result<(), Failure> {
        for step in 0.. {
            let (operations, faults) = (self.world.operations(), self.bench.counts.total());
            if step >= effort.steps && operations >= effort.operations && faults >= effort.faults {
                break;
            }
            if step >= effort.steps.max(1000) * Effort::PATIENCE {
                let what = format!("{operations} operations and {faults} faults after {step} steps");
                return Err(Failure::Stuck(what));
            }
            self.step_checked(step).map_err(|what| Failure::Wrong(format!("step {step}: {what}")))?;
        }
        match self.settle() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Stuck(format!("stuck: {}", self.world.describe(&self.bench)))),
            Err(what) => Err(Failure::Wrong(what)),
        }
    }
}
