//! What many runs came to, as text and as JSON.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use check::rack::{Failure, Fault, Sum, Tallies};
use serde_json::{Map, Value, json};

use super::failure::{Told, name};
use super::{Outcome, Subject};

/// The runs so far.
pub(super) struct Summary<S: Subject> {
    seeds: Range<u64>,
    /// Runs that ended, well or not.
    pub(super) done: u64,
    pub(super) failures: Vec<(u64, Failure)>,
    faults: Tallies,
    without_stops: u64,
    sum: S::Seen,
    /// The fewest operations of any run.
    fewest: Option<u64>,
}

impl<S: Subject> Summary<S> {
    pub(super) fn new(seeds: Range<u64>) -> Self {
        let (faults, sum) = (Tallies::default(), S::Seen::default());
        Self { seeds, done: 0, failures: Vec::new(), faults, without_stops: 0, sum, fewest: None }
    }

    pub(super) fn take(&mut self, seed: u64, result: Outcome<S>) {
        self.done += 1;
        match result {
            Ok(report) => {
                let operations = S::operations(&report.seen);
                self.fewest = Some(self.fewest.map_or(operations, |fewest| fewest.min(operations)));
                self.faults.take(&S::plan(seed).rack, &report.faults);
                self.without_stops += report.without_stops;
                self.sum.add(&report.seen);
            }
            Err(failure) => self.failures.push((seed, failure)),
        }
    }

    /// Faults that were to happen, and never did.
    pub(super) fn blind(&self) -> Vec<Fault> {
        self.faults.blind()
    }

    fn groups(&self) -> super::Groups {
        S::groups(&self.sum, self.fewest.unwrap_or(0))
    }

    pub(super) fn to_text(&self) -> String {
        let head =
            format!("{:<33} {:>12} {:>9} {:>8} {:>10}", "faults", "total", "fewest", "runs", "drawn, and");
        let mut text =
            format!("{head}\n{:<33} {:>12} {:>9} {:>8} {:>10}\n", "", "", "in a run", "without", "without");
        for (fault, tally) in self.faults.all() {
            let _ = writeln!(
                text,
                "  {:<31} {:>12} {:>9} {:>8} {:>10}",
                fault.name(),
                tally.total,
                tally.fewest,
                tally.runs_without,
                tally.drawn_without
            );
        }
        let name = "runs that got on once nothing stopped";
        let _ = writeln!(text, "  {name:<44} {:>12}", self.without_stops);
        for (title, rows) in self.groups() {
            let _ = writeln!(text, "{title}");
            for (name, count) in rows {
                let never = if count == 0 { "  never" } else { "" };
                let _ = writeln!(text, "  {name:<44} {count:>12}{never}");
            }
        }
        text
    }

    pub(super) fn to_json(&self, took: Duration, told: &[Told]) -> Value {
        let failures = self.failures.iter().map(|(seed, failure)| {
            let smallest = told.iter().find(|told| told.seed == *seed).map(Told::to_json);
            json!({ "seed": seed, "how": name(failure.verdict), "what": failure.what, "smallest": smallest })
        });
        let faults = self.faults.all().map(|(fault, tally)| {
            let tally = json!({
                "total": tally.total,
                "fewest": tally.fewest,
                "runs_without": tally.runs_without,
                "drawn": tally.drawn,
                "drawn_without": tally.drawn_without,
            });
            (fault.name().replace(' ', "_"), tally)
        });
        let groups = self.groups().into_iter().map(|(title, rows)| {
            let rows: Map<String, Value> =
                rows.into_iter().map(|(name, count)| (name, Value::from(count))).collect();
            (title.replace(' ', "_"), Value::from(rows))
        });
        json!({
            "seeds": { "from": self.seeds.start, "to": self.seeds.end },
            "done": self.done,
            "seconds": took.as_secs_f64(),
            "failures": failures.collect::<Vec<_>>(),
            "faults": faults.collect::<Map<String, Value>>(),
            "runs_that_got_on_without_stops": self.without_stops,
            "seen": groups.collect::<Map<String, Value>>(),
        })
    }
}
