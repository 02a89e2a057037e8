//! Stores of chains against one number: the axis of a figure.

use crate::figure::chart::Chart;
use crate::figure::measured::Measured;
use crate::figure::point::{Chains, Load, Point, Subject};
use crate::figure::{Results, Table};

/// Keys of the store (section 4.2).
pub(super) const KEYS: u32 = 1024;

/// YCSB-A on 64 threads, zipf 0.75, and state for all keys (section 4.1).
pub(super) const PAPER: Chains =
    Chains { threads: 64, writes: 50, zipf: 75, keys: KEYS, held: KEYS, apart: 0 };

pub(super) const BOTH: [Subject; 2] = [Subject::Clover, Subject::Steering];

/// Stores that depend on one number.
pub(super) struct Axis {
    /// Its values.
    pub(super) values: &'static [u32],
    /// The store at a value.
    pub(super) load: fn(u32) -> Chains,
}

impl Axis {
    pub(super) fn points(&self, subjects: &[Subject]) -> Vec<Point> {
        let at = |subject| self.values.iter().map(move |value| self.point(subject, *value));
        subjects.iter().copied().flat_map(at).collect()
    }

    fn point(&self, subject: Subject, value: u32) -> Point {
        let load = (self.load)(value);
        // The store without steering is one, however many keys had state.
        let held = if subject == Subject::Clover { 0 } else { load.held };
        Point::new(subject, Load::Chains(Chains { held, ..load }))
    }

    pub(super) fn at<'a>(&self, results: &'a Results, subject: Subject, value: u32) -> &'a Measured {
        let point = self.point(subject, value);
        results.at(point.subject, point.load)
    }

    /// How many times the throughput of Clover that with steering is.
    pub(super) fn gain(&self, results: &Results, value: u32) -> f64 {
        let mops = |subject| self.at(results, subject, value).mops();
        mops(Subject::Steering) / mops(Subject::Clover)
    }

    pub(super) fn chart(
        &self,
        results: &Results,
        (name, title, x): (&str, &str, &str),
        subjects: &[Subject],
    ) -> Chart {
        subjects.iter().fold(Chart::new(name, title, x, "Mops"), |chart, subject| {
            let values = self.values.iter();
            let points = values.map(|value| (f64::from(*value), self.at(results, *subject, *value).mops()));
            chart.line(subject.name(), points)
        })
    }

    /// Numbers of runs: a row for each system and number.
    pub(super) fn table(
        &self,
        results: &Results,
        (title, unit): (&str, &str),
        subjects: &[Subject],
        numbers: &[Row],
    ) -> Table {
        let row = |subject: Subject, (what, number): &Row| {
            let of = |value: &u32| number(self.at(results, subject, *value));
            (format!("{}: {what}", subject.name()), self.values.iter().map(of).collect())
        };
        let rows = subjects.iter().flat_map(|subject| numbers.iter().map(move |it| row(*subject, it)));
        Table {
            title: title.to_owned(),
            columns: self.values.iter().map(|value| format!("{value}{unit}")).collect(),
            rows: rows.collect(),
        }
    }
}

/// What a row of a table is, and its numbers.
pub(super) type Row = (&'static str, fn(&Measured) -> f64);

/// Round trips, and what bounds them.
pub(super) const TRIPS: [Row; 8] = [
    ("round trips of a get, mean", |it| it.trip("get, mean")),
    ("p50", |it| it.trip("get, p50")),
    ("p99", |it| it.trip("get, p99")),
    ("round trips of a put, mean", |it| it.trip("put, mean")),
    ("p50", |it| it.trip("put, p50")),
    ("p99", |it| it.trip("put, p99")),
    ("failed compare-and-swaps for each operation", |it| it.per_operation(it.refused)),
    ("share of the time in which the NIC executes atomics", |it| it.trip("atomics")),
];
