//! The rack, step by step.
//!
//! What must always hold: a seed and a plan give one run.

use wire::{Nanos, NodeId};

use super::{Bench, Counts, Plan, Sum, World};

/// A world on a bench.
pub struct Rack<W, M> {
    /// What the harness brings.
    pub bench: Bench<M>,
    /// What runs on it.
    pub world: W,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report<S> {
    /// What went wrong, by kind.
    pub faults: Counts,
    /// Runs in which things had to cease to stop before the work got on.
    pub without_stops: u64,
    /// What its world did.
    pub seen: S,
}

impl<S: Sum> Report<S> {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.faults.add(&other.faults);
        self.without_stops += other.without_stops;
        self.seen.add(&other.seen);
    }
}

/// Steps without faults after which a run that does not come to rest is stuck.
const SETTLING: usize = 40_000;

impl<W: World<M, Message = M>, M: Copy> Rack<W, M> {
    /// A rack at rest.
    pub fn new(rules: W::Rules, plan: Plan<W::Plan>, seed: u64) -> Self {
        Self { bench: Bench::new(plan.rack, seed), world: W::new(rules, &plan) }
    }

    /// One step, and what must hold after it.
    ///
    /// # Errors
    /// The first property that did not hold.
    pub fn step_checked(&mut self, step: usize) -> Result<(), String> {
        self.step()?;
        self.check_after(step)
    }

    fn check_after(&mut self, step: usize) -> Result<(), String> {
        self.world.check_after(&self.bench, step)?;
        self.bench.touch_nothing();
        Ok(())
    }

    /// Ends the faults, starts what is down as far as it must run, and runs until nothing is in flight.
    ///
    /// # Errors
    /// The first property that did not hold, or, as `Ok(false)`, that it does not come to rest.
    pub(super) fn settle(&mut self) -> Result<bool, String> {
        self.bench.note(None, || "=== no more faults".to_owned());
        self.bench.end_faults();
        self.settle_control()?;
        self.check_after(0).map_err(|what| format!("faults off: {what}"))?;
        for step in 0..SETTLING {
            if self.is_quiet() {
                self.world.check_at_rest(&self.bench).map_err(|what| format!("at rest: {what}"))?;
                return Ok(true);
            }
            self.step_checked(step).map_err(|what| format!("faults off, step {step}: {what}"))?;
        }
        Ok(false)
    }

    fn is_quiet(&self) -> bool {
        self.bench.network.is_empty()
            && self.world.second_passes() == 0
            && self.bench.control.is_settled()
            && self.world.is_quiet(&self.bench)
    }

    /// What the run has done so far.
    pub fn report(&self) -> Report<W::Seen> {
        let Bench { counts: faults, stops_end, .. } = self.bench;
        Report { faults, without_stops: u64::from(stops_end), seen: self.world.seen(&self.bench) }
    }

    /// One thing happens, of those that can.
    fn step(&mut self) -> Result<(), String> {
        self.bench.now += self.bench.plan.step;
        if !self.bench.restarts().is_never()
            || self.bench.starts_what_is_down()
            || !self.bench.control.is_settled()
        {
            self.control_step()?;
        }
        let idle = self.bench.network.is_empty();
        match self.bench.random.below(16) {
            0 | 1 if self.world.second_passes() > 0 => self.world.second_pass(&mut self.bench),
            // Faster than packets can be made, or time-outs would make ever more of them.
            2..=9 if !idle => self.deliver()?,
            2..=14 if self.bench.network.is_crowded() => self.deliver()?,
            10 | 15 => self.deadlines()?,
            _ if self.world.act(&mut self.bench)? => {}
            _ if !idle => self.deliver()?,
            _ if self.world.second_passes() > 0 => self.world.second_pass(&mut self.bench),
            _ => self.deadlines()?,
        }
        Ok(())
    }

    fn deliver(&mut self) -> Result<(), String> {
        // Re-entering packets do not wait for ever.
        if self.world.second_passes() > 3 {
            self.world.second_pass(&mut self.bench);
            return Ok(());
        }
        let (how, nodes) = ((self.bench.plan.order, self.bench.faults()), self.bench.plan.nodes);
        let Bench { network, random, counts, .. } = &mut self.bench;
        let Some((to, message)) = network.deliver(random, how, nodes, counts) else { return Ok(()) };
        if !self.bench.control.is_up(to) {
            return Ok(());
        }
        self.world.deliver(&mut self.bench, to, &message)
    }

    /// Some node is called because a deadline has passed; or early, which is harmless. If nobody has anything
    /// else to do, time goes on to the next deadline.
    fn deadlines(&mut self) -> Result<(), String> {
        let nodes = self.bench.plan.nodes;
        let first = self.bench.random.below(nodes);
        let order = (0..nodes).map(|n| NodeId(((first + n) % nodes) as u16));
        let mut working = order.filter(|node| self.bench.control.works(*node)).peekable();
        let Some(&drawn) = working.peek() else { return Ok(()) };
        let next = working.min_by_key(|node| self.world.next_deadline(*node)).expect("it is one of them");
        let deadline = self.world.next_deadline(next);
        let idle = self.bench.network.is_empty() && self.world.second_passes() == 0;
        let due = deadline <= self.bench.now;
        if idle && !due {
            self.bench.now = deadline.min(self.bench.now + Nanos::from_millis(1));
        }
        self.world.on_deadline(&mut self.bench, if due || idle { next } else { drawn })
    }
}
