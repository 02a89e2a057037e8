//! One run of a seed that was worth it: so many operations, and so many faults, or it goes on.

use wire::Rules;

use super::{Plan, Rack, Report};

/// What a run must have met before it may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// Steps.
    pub steps: usize,
    /// Accesses, locks, allocations and frees that took place.
    pub operations: u64,
    /// Packets that something happened to, and places that stopped or started.
    pub faults: u64,
}

impl Effort {
    /// What `rackmem fuzz` asks of every seed.
    pub const FUZZ: Self = Self { steps: 40_000, operations: 2_000, faults: 20 };

    /// After so many times its steps, a run that has not met the rest is stuck.
    const PATIENCE: usize = 20;
}

/// How a run went wrong.
#[derive(Clone, Debug)]
pub enum Failure {
    /// A property did not hold.
    Wrong(String),
    /// Something was still under way, or the work did not get on, after a long time.
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

impl<R: Rules> Rack<R> {
    /// Runs until the effort is made, and then until nothing is under way.
    ///
    /// # Errors
    /// The first thing that went wrong; the report says what there was until then.
    ///
    /// # Panics
    /// Where a machine of the rack does.
    pub fn run_with(&mut self, effort: Effort) -> Result<(), Failure> {
        for step in 0.. {
            let (operations, faults) = (self.report().operations(), self.faults_so_far());
            if step >= effort.steps && operations >= effort.operations && faults >= effort.faults {
                break;
            }
            if step >= effort.steps.max(1000) * Effort::PATIENCE {
                let what = format!("{operations} operations and {faults} faults after {step} steps");
                return Err(Failure::Stuck(what));
            }
            self.step_checked(step).map_err(|what| Failure::Wrong(format!("step {step}: {what}")))?;
        }
        self.settle().map_err(|what| match what.starts_with("stuck") {
            true => Failure::Stuck(what),
            false => Failure::Wrong(what),
        })
    }
}

impl Report {
    /// Accesses, locks, allocations and frees that took place.
    pub fn operations(&self) -> u64 {
        self.accesses + self.locks + self.allocations + self.frees
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.accesses += other.accesses;
        self.peeked += other.peeked;
        self.locks += other.locks;
        self.allocations += other.allocations;
        self.frees += other.frees;
        self.refused += other.refused;
        self.lost += other.lost;
        self.faults.add(&other.faults);
        self.stops.add(&other.stops);
        self.protocol.add(&other.protocol);
        self.coverage.add(&other.coverage);
    }
}

/// Runs one plan from one seed; a panic is a failure like any other. Without a hook of the caller's, it also
/// prints what panics print.
///
/// # Errors
/// What went wrong.
pub fn run_seed<R: Rules>(plan: Plan, seed: u64, effort: Effort) -> Result<Report, Failure> {
    let run = || {
        let mut rack = Rack::<R>::with_rules(plan, seed);
        rack.run_with(effort).map(|()| rack.report().clone())
    };
    std::panic::catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Failure::Crashed(text.unwrap_or_else(|| "a panic without a message".to_owned())))
    })
}
