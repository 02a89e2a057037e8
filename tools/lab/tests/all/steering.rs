//! The figures of steering at a tiny scale: a run is the same again, and who should be ahead is. What each shows, `claims.rs` asks.

use crate::tiny;

use lab::figure::point::{Chains, Load, Point, Subject};
use lab::figure::{FigureReport, Results};
use lab::sizes::Sizes;

pub(crate) const SIZES: Sizes = Sizes { warm_up: 4_000, operations: 2_000, ..Sizes::TINY };

fn run(points: &[Point], threads: usize, seed: u64) -> Results {
    tiny::run(&SIZES, points, threads, seed)
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
    tiny::a_run_is_the_same_again(&SIZES, &points, true);
}

/// What a figure shows.
pub(crate) fn shows(report: &FigureReport, heights: &[f64]) -> bool {
    !report.charts.is_empty() && heights.iter().all(|it| *it >= 0.0)
}

#[test]
fn steering_is_ahead_where_many_write_the_same_keys() {
    let points = [Point::new(Subject::Clover, chains(0)), Point::new(Subject::Steering, chains(1024))];
    let results = run(&points, 2, 1);
    let [clover, steering] = points.map(|point| results.at(point.subject, point.load));
    assert!(steering.mops() > 1.5 * clover.mops(), "{} {}", steering.mops(), clover.mops());
    assert!(steering.trip("put, mean") < 2.3 && clover.trip("put, mean") > 2.5);
}
