//! Ways to read objects against one number: the axis of a figure.

use crate::figure::Results;
use crate::figure::chart::Chart;
use crate::figure::measured::Measured;
use crate::figure::point::{Load, Objects, Point, Subject};
use crate::systems::objects::PARTS;

/// Bytes of objects: the paper's, 64 B to 8 KB.
pub(super) const SIZES: &[u32] = &[64, 128, 256, 512, 1024, 2048, 4096, 8192];

/// Objects that depend on one number.
pub(super) struct Axis {
    /// Its values.
    pub(super) values: &'static [u32],
    /// The objects at a value.
    pub(super) load: fn(u32) -> Objects,
}

impl Axis {
    pub(super) fn points(&self, subjects: &[Subject]) -> Vec<Point> {
        let at = |subject| {
            self.values.iter().map(move |value| Point::new(subject, Load::Objects((self.load)(*value))))
        };
        subjects.iter().copied().flat_map(at).collect()
    }

    pub(super) fn at<'a>(&self, results: &'a Results, subject: Subject, value: u32) -> &'a Measured {
        results.at(subject, Load::Objects((self.load)(value)))
    }

    /// How many times the number of `second` that of `first` is, at each of these values.
    pub(super) fn ratios(
        &self,
        results: &Results,
        (first, second): (Subject, Subject),
        values: &[u32],
        number: fn(&Measured) -> f64,
    ) -> Vec<f64> {
        let of = |subject, value| number(self.at(results, subject, value));
        values.iter().map(|value| of(first, *value) / of(second, *value)).collect()
    }

    pub(super) fn chart(
        &self,
        results: &Results,
        (name, title, x, y): (&str, &str, &str, &str),
        subjects: &[Subject],
        number: impl Fn(u32, &Measured) -> f64,
    ) -> Chart {
        subjects.iter().fold(Chart::new(name, title, x, y), |chart, subject| {
            let values = self.values.iter();
            let points =
                values.map(|value| (f64::from(*value), number(*value, self.at(results, *subject, *value))));
            chart.line(subject.name(), points)
        })
    }

    /// What an operation's time is made of, of one system: a row for each part.
    pub(super) fn parts(&self, results: &Results, subject: Subject) -> Vec<(String, Vec<f64>)> {
        let row = |part: &str| {
            let of = |value: &u32| self.at(results, subject, *value).cause(part);
            (format!("{}: {part}", subject.name()), self.values.iter().map(of).collect())
        };
        PARTS.iter().map(|part| row(part)).collect()
    }
}

/// Nanoseconds of an operation on average.
pub(super) fn latency(it: &Measured) -> f64 {
    it.budget.iter().map(|(_, time)| time).sum()
}

/// Nanoseconds of its transfers.
pub(super) fn transfer(it: &Measured) -> f64 {
    it.cause(PARTS[1])
}

/// GB/s of data.
pub(super) fn gigabytes(bytes: u32, it: &Measured) -> f64 {
    it.mops() * f64::from(bytes) / 1e3
}

pub(super) fn extremes(ratios: &[f64]) -> (f64, f64) {
    ratios.iter().fold((f64::INFINITY, 0.0), |(least, most), ratio| (ratio.min(least), ratio.max(most)))
}
