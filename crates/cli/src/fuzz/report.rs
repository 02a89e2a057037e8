//! What many runs came to, as text and as JSON.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use check::rack::{Failure, Report};
use serde_json::{Map, Value, json};
use switch::flowcc::tables::{CHECK, FORWARD};
use wire::{Kind, Refusal};

/// The runs so far.
pub(super) struct Summary {
    seeds: Range<u64>,
    /// Runs that ended, well or not.
    pub(super) done: u64,
    pub(super) failures: Vec<(u64, Failure)>,
    sum: Report,
    /// The fewest operations of any run.
    fewest: Option<u64>,
}

impl Summary {
    pub(super) fn new(seeds: Range<u64>) -> Self {
        Self { seeds, done: 0, failures: Vec::new(), sum: Report::default(), fewest: None }
    }

    pub(super) fn take(&mut self, seed: u64, result: Result<Report, Failure>) {
        self.done += 1;
        match result {
            Ok(report) => {
                let operations = report.operations();
                self.fewest = Some(self.fewest.map_or(operations, |fewest| fewest.min(operations)));
                self.sum.add(&report);
            }
            Err(failure) => self.failures.push((seed, failure)),
        }
    }

    fn groups(&self) -> Vec<(&'static str, Vec<(String, u64)>)> {
        let Report { accesses, locks, allocations, frees, refused, lost, .. } = self.sum;
        let named = |rows: &[(&str, u64)]| rows.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let (faults, stops, coverage) = (&self.sum.faults, &self.sum.stops, &self.sum.coverage);
        let protocol = &self.sum.protocol;
        let check = CHECK.iter().zip(coverage.check).map(|(row, seen)| {
            let member = match row.member {
                None => "",
                Some(true) => ", has a copy",
                Some(false) => ", has none",
            };
            (format!("{:?} {}{member}", row.event, any(row.status)), seen)
        });
        let forward = FORWARD.iter().zip(coverage.forward);
        let forward =
            forward.map(|(row, seen)| (format!("{:?} {} to {:?}", row.event, any(row.status), row.to), seen));
        let kinds = Kind::ALL.into_iter().map(|kind| (format!("{kind:?}"), coverage.kinds[kind as usize]));
        let refusals = Refusal::ALL.into_iter().zip(coverage.refusals);
        let node_drops = node::Drop::ALL.into_iter().zip(protocol.dropped);
        let switch_drops = switch::flowcc::Drop::ALL.into_iter().zip(coverage.switch_drops);
        vec![
            (
                "operations",
                named(&[
                    ("accesses", accesses),
                    ("locks", locks),
                    ("allocations", allocations),
                    ("frees", frees),
                    ("refused", refused),
                    ("refused as lost", lost),
                    ("fewest in a run", self.fewest.unwrap_or(0)),
                ]),
            ),
            (
                "faults",
                named(&[
                    ("packets lost", faults.lost),
                    ("duplicated", faults.duplicated),
                    ("delayed", faults.delayed),
                    ("corrupted", faults.corrupted),
                    ("partitions", faults.partitions),
                    ("packets stopped by them", faults.unreachable),
                ]),
            ),
            (
                "restarts",
                named(&[
                    ("switch stopped", stops.switch),
                    ("nodes died", stops.nodes),
                    ("nodes came back", stops.returns),
                    ("shadow restarted", stops.shadow),
                    ("epochs", stops.epochs),
                    ("blocks lost", protocol.lost),
                    ("blocks saved from answers", protocol.salvaged),
                ]),
            ),
            (
                "protocol",
                named(&[
                    ("retransmissions", protocol.retransmissions),
                    ("requests parked", protocol.parked),
                    ("turns waited for", protocol.turns),
                    ("invalidations", protocol.invalidations),
                    ("blocks provided", protocol.provided),
                    ("moved to the switch", protocol.added_to_switch),
                    ("moved home", protocol.removed_from_switch),
                    ("most refusals of one operation", protocol.worst_refusals),
                ]),
            ),
            ("check table", check.collect()),
            ("forward table", forward.collect()),
            ("packets", kinds.collect()),
            ("refusals", refusals.map(|(why, seen)| (format!("{why:?}"), seen)).collect()),
            ("dropped by nodes", node_drops.map(|(why, seen)| (format!("{why:?}"), seen)).collect()),
            ("dropped by the switch", switch_drops.map(|(why, seen)| (format!("{why:?}"), seen)).collect()),
        ]
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

fn any(status: Option<wire::GlobalStatus>) -> String {
    status.map_or_else(|| "any".to_owned(), |status| format!("{status:?}"))
}
