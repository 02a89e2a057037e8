//! A run that failed, as it is told: made smaller first, with what happened last, and the command that repeats it.

use std::time::{Duration, Instant};

use check::rack::{Failure, Rack, Verdict};
use serde_json::{Value, json};

use super::{Args, Subject, again, case_of, command};
use cli::interrupt::Interrupt;
use cli::say;
use wire::AllRules;

/// A failed run.
pub(super) struct Told {
    pub(super) seed: u64,
    failure: Failure,
    /// What happened last to the block or lock that it is about.
    events: Vec<String>,
    /// The command that repeats it.
    again: String,
    /// How it failed before it was made smaller, if it was.
    before: Option<(Failure, String)>,
}

impl Told {
    /// Makes the run of a seed smaller, as long as the command line allows.
    pub(super) fn of<S: Subject>(args: &Args, seed: u64, failure: &Failure, interrupt: &Interrupt) -> Self {
        let seeds = seed..seed + 1;
        let case = case_of::<S>(seed, args).expect("it has run");
        let mut told = Self {
            seed,
            failure: failure.clone(),
            events: Vec::new(),
            again: again(args, &seeds),
            before: None,
        };
        let mut smallest = case;
        if args.shrink > 0 && !args.trace && !interrupt.requested() {
            say!(
                "seed {seed} failed: for {} s, a smaller run is looked for that fails in the same way",
                args.shrink
            );
            let until = Instant::now() + Duration::from_secs(args.shrink);
            let (found, failure) = Rack::<S::World, S::Message>::shrink(AllRules, &case, failure, until);
            let plain = Args { with: Vec::new(), steps: None, ..args.clone() };
            let with = found.differences(case_of::<S>(seed, &plain).expect("a seed's own numbers are right"));
            told.before = Some((std::mem::replace(&mut told.failure, failure), told.again.clone()));
            told.again = command(args, &seeds, &with);
            smallest = found;
        }
        if !args.trace {
            told.events = Rack::<S::World, S::Message>::last_events(AllRules, &smallest, &told.failure);
        }
        told
    }

    pub(super) fn to_text(&self) -> String {
        let Self { seed, failure, events, again, before } = self;
        let mut text = format!("seed {seed}: {}\n", failure.what.trim_end());
        if let Some((failure, again)) = before {
            let first = failure.what.lines().next().unwrap_or_default();
            text += &format!("  made smaller; it was: {first}\n  as it was: {again}\n");
        }
        if !events.is_empty() {
            text += "  what happened last to what it is about:\n";
            text.extend(events.iter().map(|event| format!("  {event}\n")));
        }
        text + &format!("  repeat it: {again} --trace\n")
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "what": self.failure.what, "again": self.again, "events": self.events })
    }
}

/// What programs call it.
pub(super) const fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Wrong => "wrong",
        Verdict::Stuck => "stuck",
        Verdict::Crashed => "crash",
    }
}
