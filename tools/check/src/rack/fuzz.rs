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
    /// What `rackmem-lab fuzz` asks of every seed.
    pub const FUZZ: Self = Self { steps: 40_000, operations: 2_000, faults: 20 };

    /// After so many times its steps, nothing stops or dies any more in a run that has not met the rest: where recoveries are cut short
    /// faster than they end, it is not the machines that are stuck.
    const ENOUGH_STOPS: usize = 10;
    /// After so many, it is stuck.
    const TIMEOUT: usize = 20;

    /// So many steps, whatever they come to.
    pub const fn steps(steps: usize) -> Self {
        Self { steps, operations: 0, faults: 0 }
    }
}

/// All that a run follows from.
#[derive(Clone, Copy, Debug)]
pub struct Case<P> {
    /// What it is like.
    pub plan: Plan<P>,
    /// Where its choices come from: its seed, or another one of the same plan.
    pub stream: u64,
    /// How long it is.
    pub effort: Effort,
}

/// In which way a run went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// A property did not hold.
    Wrong,
    /// Something was still in flight, or the work did not get on, after a long time.
    Stuck,
    /// A machine panicked.
    Crashed,
}

/// How a run went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// In which way.
    pub verdict: Verdict,
    /// What happened.
    pub what: String,
    /// The steps under faults that it took to get there.
    pub steps: usize,
    /// The block or lock that it is about, or that the last thing which happened was about.
    pub about: Option<u64>,
}

impl Failure {
    /// What happened.
    pub fn what(&self) -> &str {
        &self.what
    }
}

/// What came of it, or what it said in a panic.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_else(|| "a panic without a message".to_owned())
    })
}

impl<W: World<M, Message = M>, M: Copy> Rack<W, M> {
    /// Runs one plan from one seed until the effort is made, and then until nothing is in flight.
    ///
    /// # Errors
    /// What went wrong.
    pub fn run_seed(
        rules: W::Rules,
        plan: Plan<W::Plan>,
        seed: u64,
        effort: Effort,
    ) -> Result<Report<W::Seen>, Failure> {
        Self::run_case(rules, &Case { plan, stream: seed, effort })
    }

    /// Runs one case until the effort is made, and then until nothing is in flight. A panic is a failure like
    /// any other; without a hook of the caller's, it also prints what panics print.
    ///
    /// # Errors
    /// What went wrong.
    pub fn run_case(rules: W::Rules, case: &Case<W::Plan>) -> Result<Report<W::Seen>, Failure> {
        let mut rack = Self::new(rules, case.plan, case.stream);
        rack.run_to_its_end(case.effort).map(|()| rack.report())
    }

    /// The last things that happened to the block or lock that a failure is about: the case is run once more, for that.
    pub fn last_events(rules: W::Rules, case: &Case<W::Plan>, failure: &Failure) -> Vec<String> {
        let mut rack = Self::new(rules, case.plan, case.stream);
        rack.bench.plan.trace = false;
        rack.bench.watch(failure.about);
        let again = rack.run_to_its_end(case.effort);
        debug_assert!(again.is_err(), "a case gives one run");
        rack.bench.events()
    }

    fn run_to_its_end(&mut self, effort: Effort) -> Result<(), Failure> {
        let mut steps = 0;
        let ended = caught(|| self.run(effort, &mut steps));
        let (verdict, what, about) = match ended {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(wrong)) => wrong,
            Err(said) => (Verdict::Crashed, said, None),
        };
        Err(Failure { verdict, what, steps, about: about.or_else(|| self.bench.last_about()) })
    }

    /// Runs until the effort is made, and then until nothing is in flight.
    fn run(&mut self, effort: Effort, steps: &mut usize) -> Result<(), (Verdict, String, Option<u64>)> {
        loop {
            let (operations, faults, step) = (self.world.operations(), self.bench.counts.total(), *steps);
            if step >= effort.steps && operations >= effort.operations && faults >= effort.faults {
                break;
            }
            let refusals_before_queue = effort.steps.max(1000);
            if step == refusals_before_queue * Effort::ENOUGH_STOPS {
                self.bench.end_stops();
            }
            if step >= refusals_before_queue * Effort::TIMEOUT {
                let (what, about) = self.world.describe(&self.bench);
                let did = format!("{operations} operations and {faults} faults after {step} steps");
                return Err((Verdict::Stuck, format!("{did}\n{what}"), about));
            }
            *steps += 1;
            self.scheduled_deaths(step);
            self.step_checked(step).map_err(|what| (Verdict::Wrong, format!("step {step}: {what}"), None))?;
        }
        match self.settle() {
            Ok(true) => Ok(()),
            Ok(false) => {
                let (what, about) = self.world.describe(&self.bench);
                Err((Verdict::Stuck, format!("it does not come to rest\n{what}"), about))
            }
            Err(what) => Err((Verdict::Wrong, what, None)),
        }
    }
}
