//! Ratios between systems over many points.

use crate::figure::Results;
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Load, Point, Subject};

/// The systems of the micro benchmark's figures.
pub(super) const ALL: [Subject; 4] = [Subject::Concordia, Subject::HomeOnly, Subject::Gam, Subject::Grappa];

/// A load that depends on one number: the axis of a figure.
pub(super) struct Axis {
    /// Its values.
    pub(super) values: &'static [u8],
    /// The load at a value.
    pub(super) load: fn(u8) -> Load,
}

impl Axis {
    /// All points of these systems.
    pub(super) fn points(&self, subjects: &[Subject]) -> Vec<Point> {
        let at = |subject| self.values.iter().map(move |value| Point::new(subject, (self.load)(*value)));
        subjects.iter().copied().flat_map(at).collect()
    }

    /// One number of a system, along the axis.
    pub(super) fn line<'a>(
        &'a self,
        results: &'a Results,
        subject: Subject,
        number: impl Fn(&Measured) -> f64 + 'a,
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        self.values.iter().map(move |value| (f64::from(*value), number(results.at(subject, (self.load)(*value)))))
    }

    /// Throughput of these systems, as lines of a chart.
    pub(super) fn throughput(&self, chart: Chart, results: &Results, subjects: &[Subject]) -> Chart {
        subjects
            .iter()
            .fold(chart, |chart, subject| chart.line(subject.name(), self.line(results, *subject, Measured::mops)))
    }

    /// How many times the throughput of `second` that of `first` is, at each of these values.
    pub(super) fn ratios(&self, results: &Results, first: Subject, second: Subject, values: &[u8]) -> Vec<f64> {
        let mops = |subject, value| results.at(subject, (self.load)(value)).mops();
        values.iter().map(|value| mops(first, *value) / mops(second, *value)).collect()
    }
}

/// The smallest and the largest.
pub(super) fn extremes(ratios: &[f64]) -> (f64, f64) {
    ratios.iter().fold((f64::INFINITY, 0.0), |(least, most), ratio| (ratio.min(least), ratio.max(most)))
}

/// "By `least` to `most`": a claim for either end.
pub(super) fn from_to(what: &str, (least, most): (f64, f64), ratios: &[f64], cause: &str) -> [Claim; 2] {
    let (smallest, largest) = extremes(ratios);
    [
        Claim::ratio(&format!("{what}, at least"), least, smallest).because(cause),
        Claim::ratio(&format!("{what}, at most"), most, largest).because(cause),
    ]
}
