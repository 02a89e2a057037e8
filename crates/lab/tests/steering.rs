//! The figures of steering at a tiny scale: they run, they say something, and the same thing each time.

use lab::figure::point::{Chains, Load, Point, Subject};
use lab::figure::run::{Unwatched, measure_all};
use lab::figure::{Results, points_of};
use lab::sizes::Sizes;
use lab::steering::FIGURES;
use lab::systems::measure::measure;

const SIZES: Sizes = Sizes { warm_up: 4_000, operations: 2_000, ..Sizes::TINY };

fn run(points: &[Point], threads: usize, seed: u64) -> Results {
    measure_all(points, threads, seed, |point, seed| measure(point, &SIZES, seed, &Unwatched)).unwrap()
}

const fn chains(held: u32) -> Load {
    Load::Chains(Chains { threads: 64, writes: 50, zipf: 99, keys: 1024, held, apart: 350 })
}

#[test]
fn a_run_is_the_same_again_on_one_thread_and_on_two() {
    let points = [
        Point::new(Subject::Clover, chains(0)),
        Point::new(Subject::Steering, chains(8)),
        Point::new(Subject::Steering, chains(1024)),
    ];
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
        assert!(!report.charts.is_empty(), "{}", report.figure);
        for line in report.charts.iter().flat_map(|chart| &chart.lines) {
            assert!(
                line.points.iter().all(|(x, y)| x.is_finite() && y.is_finite() && *y >= 0.0),
                "{}: {line:?}",
                report.figure
            );
        }
        for claim in &report.claims {
            assert!(claim.ours.is_finite(), "{}: {claim:?}", report.figure);
        }
    }
}

#[test]
fn steering_is_ahead_where_many_write_the_same_keys() {
    let points = [Point::new(Subject::Clover, chains(0)), Point::new(Subject::Steering, chains(1024))];
    let results = run(&points, 2, 1);
    let [clover, steering] = points.map(|point| results.at(point.subject, point.load));
    assert!(steering.mops() > 1.5 * clover.mops(), "{} {}", steering.mops(), clover.mops());
    assert!(steering.trip("put, mean") < 2.3 && clover.trip("put, mean") > 2.5);
}
