//! The numbers of a run, by name: for whoever repeats a run with some of them changed, and for what makes failing runs
//! smaller.

use super::{Case, Conditions};

/// A number of a run.
#[derive(Debug)]
pub struct Knob<'a> {
    /// Its name on the command line.
    pub name: &'static str,
    number: Number<'a>,
    /// It is no less than this.
    pub least: u64,
    /// And no more.
    pub most: u64,
}

#[derive(Debug)]
enum Number<'a> {
    Size(&'a mut usize),
    Rate(&'a mut u32),
    Count(&'a mut u64),
}

impl<'a> Knob<'a> {
    /// How many of something there are.
    pub fn size(name: &'static str, size: &'a mut usize, least: u64, most: u64) -> Self {
        Self { name, number: Number::Size(size), least, most }
    }

    /// How often something happens: 0 is never.
    pub fn rate(name: &'static str, rate: &'a mut u32, most: u64) -> Self {
        Self { name, number: Number::Rate(rate), least: 0, most }
    }

    fn count(name: &'static str, count: &'a mut u64) -> Self {
        Self { name, number: Number::Count(count), least: 0, most: u64::MAX }
    }

    /// What it says.
    pub fn get(&self) -> u64 {
        match &self.number {
            Number::Size(size) => **size as u64,
            Number::Rate(rate) => u64::from(**rate),
            Number::Count(count) => **count,
        }
    }

    /// Turns it; the number must be one that it can have.
    pub fn set(&mut self, to: u64) {
        assert!((self.least..=self.most).contains(&to), "{}={to}", self.name);
        match &mut self.number {
            Number::Size(size) => **size = to as usize,
            Number::Rate(rate) => **rate = to as u32,
            Number::Count(count) => **count = to,
        }
    }
}

/// What has numbers that can be changed.
pub trait Knobs: Copy {
    /// All of them. Less is smaller, or kinder.
    fn knobs(&mut self) -> Vec<Knob<'_>>;
}

impl Knobs for Conditions {
    fn knobs(&mut self) -> Vec<Knob<'_>> {
        let Self { nodes, threads, faults, restarts, most_faults, .. } = self;
        vec![
            Knob::size("nodes", nodes, 1, 64),
            Knob::size("threads", threads, 1, 64),
            Knob::count("most-faults", most_faults),
            Knob::rate("lose", &mut faults.lose, 1000),
            Knob::rate("duplicate", &mut faults.duplicate, 1000),
            Knob::rate("reorder", &mut faults.reorder, 1000),
            Knob::rate("delay", &mut faults.delay, 1000),
            Knob::rate("corrupt", &mut faults.corrupt, 1000),
            Knob::rate("partition", &mut faults.partition, 1000),
            Knob::rate("switch-stops", &mut restarts.switch, 10_000),
            Knob::rate("node-deaths", &mut restarts.node, 10_000),
            Knob::rate("shadow-restarts", &mut restarts.shadow, 10_000),
        ]
    }
}

impl<P: Knobs> Knobs for Case<P> {
    fn knobs(&mut self) -> Vec<Knob<'_>> {
        let Self { plan, stream, effort } = self;
        let mut knobs = vec![
            Knob::size("steps", &mut effort.steps, 0, 1_000_000_000),
            Knob::count("operations", &mut effort.operations),
            Knob::count("faults", &mut effort.faults),
            Knob::count("stream", stream),
        ];
        knobs.extend(plan.rack.knobs());
        knobs.extend(plan.world.knobs());
        knobs
    }
}

impl<P: Knobs> Case<P> {
    /// What one of its numbers is.
    pub fn get(mut self, name: &str) -> Option<u64> {
        self.knobs().iter().find(|knob| knob.name == name).map(Knob::get)
    }

    /// Changes one of its numbers.
    ///
    /// # Errors
    /// If there is none of that name, or it cannot be that: which there are, and what they can be.
    pub fn set(&mut self, name: &str, to: u64) -> Result<(), String> {
        let mut knobs = self.knobs();
        let Some(knob) = knobs.iter_mut().find(|knob| knob.name == name) else {
            let names: Vec<_> = knobs.iter().map(|knob| knob.name).collect();
            return Err(format!("a run has no number `{name}`: it has {}", names.join(", ")));
        };
        if !(knob.least..=knob.most).contains(&to) {
            return Err(format!("{name}={to}: it can be from {} to {}", knob.least, knob.most));
        }
        knob.set(to);
        Ok(())
    }

    /// In which numbers it is not like another one: `nodes=2,lose=0`.
    pub fn differences(mut self, mut from: Self) -> String {
        let (mine, theirs) = (self.knobs(), from.knobs());
        let differ = mine.iter().zip(&theirs).filter(|(mine, theirs)| mine.get() != theirs.get());
        let texts: Vec<_> = differ.map(|(mine, _)| format!("{}={}", mine.name, mine.get())).collect();
        texts.join(",")
    }
}
