//! Every figure at a tiny scale: it runs, it says something, and the same thing each time.

use lab::concordia::FIGURES;
use lab::figure::point::{Load, Micro, Point, Store, Subject};
use lab::figure::run::{Unwatched, measure_all};
use lab::figure::{Results, points_of};
use lab::sizes::Sizes;
use lab::systems::measure::measure;

fn run(points: &[Point], threads: usize, seed: u64) -> Results {
    measure_all(points, threads, seed, |point, seed| measure(point, &Sizes::TINY, seed, &Unwatched)).unwrap()
}

/// One of each system, and of each load.
fn some() -> Vec<Point> {
    let micro = Load::Micro(Micro { sharing: 40, reads: 50, locality: 20 });
    let store = Load::Store(Store { nodes: 2, gets: 50 });
    vec![
        Point::new(Subject::Concordia, micro),
        Point::new(Subject::HomeOnly, micro),
        Point::new(Subject::Gam, micro),
        Point::new(Subject::Grappa, micro),
        Point::new(Subject::Concordia, store),
        Point::new(Subject::Grappa, store),
    ]
}

#[test]
fn a_run_is_the_same_again_on_one_thread_and_on_two() {
    let points = some();
    let digests =
        [run(&points, 1, 1), run(&points, 1, 1), run(&points, 2, 1)].map(|results| results.digest());
    assert_eq!(digests, [digests[0]; 3]);
    assert_ne!(run(&points, 2, 2).digest(), digests[0], "another seed gives another run");
}

#[test]
fn every_figure_reports_on_all_its_points() {
    let results = run(&points_of(&FIGURES), 2, 1);
    for figure in FIGURES {
        let report = figure.report(&results);
        assert!(
            !(report.claims.is_empty() || report.charts.is_empty() && report.tables.is_empty()),
            "{}",
            report.figure
        );
        for line in report.charts.iter().flat_map(|chart| &chart.lines) {
            assert!(
                line.points.iter().all(|(x, y)| x.is_finite() && y.is_finite()),
                "{}: {line:?}",
                report.figure
            );
        }
        for claim in &report.claims {
            assert!(claim.ours.is_finite(), "{}: {claim:?}", report.figure);
        }
    }
}
