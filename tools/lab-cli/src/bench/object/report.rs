//! What `rackmem-lab bench object` prints, and the targets.

use std::fmt::Write as _;

use serde::Serialize;

use super::node::{Found, ObjectLayout};
use crate::bench::rounds::{median, table};
use cli::fault::Fault;
use cli::processes::TransportKind;
use cli::size::Bytes;

#[derive(Debug, Serialize)]
pub(super) struct ObjectBenchReport {
    pub(super) transport: TransportKind,
    pub(super) objects: u64,
    pub(super) millis: u64,
    pub(super) rounds: u64,
    /// Only between machines.
    pub(super) bare: Vec<Bare>,
    pub(super) points: Vec<Point>,
    pub(super) targets: Vec<Target>,
}

/// A request, and an answer of so many bytes.
#[derive(Debug, Serialize)]
pub(super) struct Bare {
    pub(super) bytes: u64,
    pub(super) p50_ns: u64,
}

/// Objects of one size, with so many writers.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    bytes: u64,
    writers: u16,
    layouts: Vec<Row>,
}

/// One layout there.
#[derive(Debug, Serialize)]
struct Row {
    layout: ObjectLayout,
    /// Nanoseconds of a read that the next one waits for; the median.
    p50_ns: f64,
    /// The same, if it does not wait; only where the objects are within reach.
    pipelined_ns: Option<f64>,
    /// Whole reads.
    reads_per_second: f64,
    /// Of a hundred attempts.
    torn_percent: f64,
    /// Of a hundred reads that were called whole: what was a mix.
    mixed_percent: f64,
    /// The time of a read (pipelined, where there is that) against that of a SABRe; the median of the ratios of rounds.
    against_sabre: f64,
}

/// What the project holds itself to.
#[derive(Debug, Serialize)]
pub(super) struct Target {
    what: String,
    found: f64,
    wanted: f64,
    met: bool,
}

/// By how much SABRes have to be ahead of versions in lines without writers.
const AHEAD: [(u64, f64); 3] = [(128, 1.15), (1024, 1.30), (8192, 1.87)];
/// How long a SABRe may take, against an unchecked READ.
const BEHIND: f64 = 1.10;

fn of(kind: ObjectLayout) -> usize {
    ObjectLayout::ALL.into_iter().position(|other| other == kind).expect("it is one of them")
}

impl Point {
    /// Of rounds, in each of which all kinds took turns; the last mode of each is the one that is compared.
    pub(super) fn of(bytes: u64, writers: u16, rounds: &[Vec<Vec<Found>>]) -> Result<Self, Fault> {
        let layouts = ObjectLayout::ALL
            .into_iter()
            .enumerate()
            .map(|(at, layout)| {
                let over = |pick: &dyn Fn(&[Vec<Found>]) -> f64| {
                    median(rounds.iter().map(|round| pick(round)).collect())
                };
                let last = |round: &[Vec<Found>], at: usize| round[at].last().expect("a mode").each;
                let all = || rounds.iter().flat_map(|round| &round[at]);
                let sum = |pick: fn(&Found) -> u64| all().map(pick).sum::<u64>() as f64;
                let row = Row {
                    layout,
                    p50_ns: over(&|round| round[at][0].each),
                    pipelined_ns: (rounds[0][at].len() > 1).then(|| over(&|round| last(round, at))),
                    reads_per_second: over(&|round| {
                        let found = round[at].last().expect("a mode");
                        found.reads as f64 / (found.nanos as f64 / 1e9).max(1e-9)
                    }),
                    torn_percent: 100.0 * (1.0 - sum(|found| found.reads) / sum(|found| found.attempts)),
                    mixed_percent: 100.0 * sum(|found| found.mixed) / sum(|found| found.judged),
                    against_sabre: over(&|round| last(round, at) / last(round, of(ObjectLayout::Sabre))),
                };
                if layout != ObjectLayout::Plain && row.mixed_percent > 0.0 {
                    return Err(Fault::failed(format_args!(
                        "objects of {} in layout {} were called whole and are of two writes: a bug in rackmem",
                        Bytes(bytes),
                        layout.name()
                    )));
                }
                Ok(row)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { bytes, writers, layouts })
    }

    fn against(&self, kind: ObjectLayout) -> f64 {
        self.layouts[of(kind)].against_sabre
    }
}

/// What is met and what is not.
pub(super) fn targets(points: &[Point]) -> Vec<Target> {
    let ahead = points.iter().filter(|point| point.writers == 0).filter_map(|point| {
        let wanted = AHEAD.iter().find(|(bytes, _)| *bytes == point.bytes)?.1;
        let found = point.against(ObjectLayout::Lines);
        let what = format!("{} without writers: versions in lines against SABRes", Bytes(point.bytes));
        Some(Target { what, found, wanted, met: found >= wanted })
    });
    let behind = points.iter().map(|point| 1.0 / point.against(ObjectLayout::Plain)).max_by(f64::total_cmp);
    let behind = behind.map(|found| Target {
        what: "anywhere: SABRes against an unchecked READ, at most".to_owned(),
        found,
        wanted: BEHIND,
        met: found <= BEHIND,
    });
    ahead.chain(behind).collect()
}

fn nanos(nanos: f64) -> String {
    if nanos < 10_000.0 { format!("{nanos:.1} ns") } else { format!("{:.1} µs", nanos / 1e3) }
}

fn per_second(rate: f64) -> String {
    if rate < 1e6 { format!("{:.1} k/s", rate / 1e3) } else { format!("{:.2} M/s", rate / 1e6) }
}

impl ObjectBenchReport {
    pub(super) fn text(&self) -> String {
        let mut rows = Vec::new();
        for point in &self.points {
            for row in &point.layouts {
                rows.push(vec![
                    row.layout.name().to_owned(),
                    Bytes(point.bytes).to_string(),
                    point.writers.to_string(),
                    nanos(row.p50_ns),
                    row.pipelined_ns.map_or_else(String::new, nanos),
                    per_second(row.reads_per_second),
                    format!("{:.2}x", row.against_sabre),
                    format!("{:.1} %", row.torn_percent),
                    format!("{:.1} %", row.mixed_percent),
                ]);
            }
        }
        let header =
            ["", "object", "writers", "p50", "pipelined", "reads", "against sabre", "torn", "unnoticed"];
        let mut text = format!(
            "Reads of whole objects, {} of each, over {}\n\n{}\n",
            self.objects,
            self.transport.name(),
            table(&header, &rows)
        );
        for bare in &self.bare {
            // A String takes everything.
            let _ = writeln!(
                text,
                "a bare request and its answer of {}: p50 {}",
                Bytes(bare.bytes),
                nanos(bare.p50_ns as f64)
            );
        }
        for target in &self.targets {
            // A String takes everything.
            let _ = writeln!(
                text,
                "{}: {:.2}x, the target is {:.2}x: {}",
                target.what,
                target.found,
                target.wanted,
                if target.met { "met" } else { "not met" }
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(each: f64, mixed: u64) -> Found {
        Found { each, reads: 90, nanos: 1_000_000, attempts: 100, judged: 10, mixed }
    }

    /// One round, in which a kind took so long.
    fn round(plain: f64, sabre: f64, lines: f64) -> Vec<Vec<Found>> {
        [plain, sabre, lines, 50.0, 60.0].map(|each| vec![found(each * 2.0, 0), found(each, 0)]).to_vec()
    }

    #[test]
    fn targets_are_met_by_the_pipelined_times_only() {
        let rounds = [round(10.0, 10.5, 12.1), round(10.0, 10.5, 12.1), round(99.0, 10.5, 90.0)];
        let points =
            [Point::of(128, 0, &rounds).unwrap(), Point::of(128, 4, &[round(8.0, 10.0, 5.0)]).unwrap()];
        let targets = targets(&points);
        assert_eq!(targets.len(), 2);
        assert!(targets[0].met && (targets[0].found - 12.1 / 10.5).abs() < 1e-9, "{targets:?}");
        assert!(!targets[1].met && (targets[1].found - 1.25).abs() < 1e-9, "{targets:?}");
        assert!((points[0].layouts[1].torn_percent - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_mix_that_was_called_whole_fails_the_run_unless_nobody_promised() {
        let mut mixed = round(10.0, 10.0, 10.0);
        mixed[of(ObjectLayout::Plain)][0] = found(10.0, 3);
        assert!(Point::of(128, 1, std::slice::from_ref(&mixed)).is_ok());
        mixed[of(ObjectLayout::Checksum)][1] = found(10.0, 1);
        assert!(Point::of(128, 1, &[mixed]).is_err());
    }
}
