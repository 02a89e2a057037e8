//! What many runs came to, as text and as JSON.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use check::rack::Failure;
use serde_json::{Map, Value, json};

use super::Runs;

/// The runs so far.
pub(super) struct Summary<R: Runs> {
    seeds: Range<u64>,
    /// Runs that ended, well or not.
    pub(super) done: u64,
    pub(super) failures: Vec<(u64, Failure)>,
    sum: R::Report,
    /// The fewest operations of any run.
    fewest: Option<u64>,
}

impl<R: Runs> Summary<R> {
    pub(super) fn new(seeds: Range<u64>) -> Self {
        Self { seeds, done: 0, failures: Vec::new(), sum: R::Report::default(), fewest: None }
    }

    pub(super) fn take(&mut self, seed: u64, result: Result<R::Report, Failure>) {
        self.done += 1;
        match result {
            Ok(report) => {
                let operations = R::operations(&report);
                self.fewest = Some(self.fewest.map_or(operations, |fewest| fewest.min(operations)));
                R::add(&mut self.sum, &report);
            }
            Err(failure) => self.failures.push((seed, failure)),
        }
    }

    fn groups(&self) -> super::Groups {
        R::groups(&self.sum, self.fewest.unwrap_or(0))
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for (title, rows) in self.groups() {
            let _ = writeln!(text, "{title}");
            for (name, count) in rows {
                let never = if count == 0 { "  never" } else { "" };
                let _ = writeln!(text, "  {name:<44} {count:>12}{never}");
            }
        }
        text
    }

    pub(super) fn to_json(&self, took: Duration) -> Value {
        let failures = self.failures.iter().map(|(seed, failure)| {
            let how = match failure {
                Failure::Wrong(_) => "wrong",
                Failure::Stuck(_) => "stuck",
                Failure::Crashed(_) => "crash",
            };
            json!({ "seed": seed, "how": how, "what": failure.what() })
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
            "seen": groups.collect::<Map<String, Value>>(),
        })
    }
}
