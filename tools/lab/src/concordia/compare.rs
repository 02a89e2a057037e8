//! Ratios between systems over many points.

use crate::figure::Results;
use crate::figure::chart::Chart;
use crate::figure::claim::Claim;
use crate::figure::measured::Measured;
use crate::figure::point::{Load, Point, Subject};

/// The systems of the micro benchmark's figures.
pub(super) const ALL: [Subject; 5] =
    [Subject::Rackmem, Subject::Concordia, Subject::HomeOnly, Subject::Gam, Subject::Grappa];

/// Why ours differs, where GAM is compared with a little sharing.
pub(super) const CONFLICT_MISSES: &str = "By the paper's numbers (a quarter of GAM's 23 Mops, times 3.5 \
    to 3.9) Concordia does 20 to 22 Mops at 20 % sharing. Ours has conflict misses: the footprint is 95 \
    % of the cache, in random sets of eight.";
/// Why ours differs, where it depends on points that the paper has and we do not.
pub(super) const LITTLE_SHARING: &str = "By the paper's Figure 11 home-only is at least 2.9 times GAM \
    at 20 % sharing. Its 1.25 must be at less sharing, where we have no point.";
/// Why ours differs, where the key-value store on GAM is compared.
pub(super) const STORES: &str = "Both run our store, which takes no locks. The paper's stores lock and \
    unlock.";
/// Why ours differs, where Grappa is compared.
pub(super) const GRAPPA_FASTER: &str = "Our Grappa may be faster than the paper's, which is \"far lower \
    than other systems\"; the paper gives no number.";

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
        self.values
            .iter()
            .map(move |value| (f64::from(*value), number(results.at(subject, (self.load)(*value)))))
    }

    /// Throughput of these systems, as lines of a chart.
    pub(super) fn throughput(&self, chart: Chart, results: &Results, subjects: &[Subject]) -> Chart {
        subjects.iter().fold(chart, |chart, subject| {
            chart.line(subject.name(), self.line(results, *subject, Measured::mops))
        })
    }

    /// How many times the throughput of `second` that of `first` is, at each of these values.
    pub(super) fn ratios(
        &self,
        results: &Results,
        first: Subject,
        second: Subject,
        values: &[u8],
    ) -> Vec<f64> {
        let mops = |subject, value| results.at(subject, (self.load)(value)).mops();
        values.iter().map(|value| mops(first, *value) / mops(second, *value)).collect()
    }
}

/// The smallest and the largest.
pub(super) fn extremes(ratios: &[f64]) -> (f64, f64) {
    ratios.iter().fold((f64::INFINITY, 0.0), |(least, most), ratio| (ratio.min(least), ratio.max(most)))
}

/// The line `rackmem` is not behind Concordia's, anywhere.
pub(super) fn never_behind(ratios: &[f64]) -> Claim {
    let (least, _) = extremes(ratios);
    Claim::target("rackmem over Concordia at its worst", 0.98, least)
}

/// "By `least` to `most`": a claim for either end.
pub(super) fn from_to(what: &str, (least, most): (f64, f64), ratios: &[f64], cause: &str) -> [Claim; 2] {
    let (smallest, largest) = extremes(ratios);
    [
        Claim::ratio(&format!("{what}, at least"), least, smallest).because(cause),
        Claim::ratio(&format!("{what}, at most"), most, largest).because(cause),
    ]
}
