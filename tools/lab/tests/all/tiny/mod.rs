//! Figures at a tiny scale: what must hold of the figures of every paper.

use lab::figure::input::Inputs;
use lab::figure::point::Point;
use lab::figure::run::{Unwatched, measure_all};
use lab::figure::{FigureReport, Results};
use lab::sizes::Sizes;
use lab::systems::measure::measure;

pub(crate) fn run(sizes: &Sizes, points: &[Point], threads: usize, seed: u64) -> Results {
    measure_all(points, threads, seed, |point, seed| {
        measure(point, sizes, &Inputs::declared(), seed, &Unwatched)
    })
    .unwrap()
}

/// A run is the same again, on one thread and on two; and another one from another seed, where something is left to chance.
pub(crate) fn a_run_is_the_same_again(sizes: &Sizes, points: &[Point], by_chance: bool) {
    let digest = |threads, seed| run(sizes, points, threads, seed).digest();
    let digests = [digest(1, 1), digest(1, 1), digest(2, 1)];
    assert_eq!(digests, [digests[0]; 3]);
    assert_eq!(digest(2, 2) != digests[0], by_chance, "another seed");
}

/// What must hold of a figure and of the heights of its lines, besides.
pub(crate) type Shows = fn(&FigureReport, &[f64]) -> bool;

/// A figure says something of all its points, in numbers that are some.
pub(crate) fn says_something(report: &FigureReport, shows: Shows) {
    assert!(!(report.charts.is_empty() && report.tables.is_empty()), "{}", report.figure);
    let points = report.charts.iter().flat_map(|chart| &chart.lines).flat_map(|line| &line.points);
    let (places, heights): (Vec<f64>, Vec<f64>) = points.copied().unzip();
    let cells = report.tables.iter().flat_map(|table| table.rows.iter().flat_map(|(_, row)| row.clone()));
    let ours = report.claims.iter().map(|claim| claim.ours);
    let mut all = cells.chain(ours).chain(places).chain(heights.iter().copied());
    assert!(all.all(f64::is_finite), "{}: {report:?}", report.figure);
    assert!(shows(report, &heights), "{}: {report:?}", report.figure);
}
