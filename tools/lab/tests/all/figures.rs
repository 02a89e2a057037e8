//! Figures at a tiny scale: a run is the same again. What each figure shows, `claims.rs` asks.

use crate::tiny;

use lab::figure::FigureReport;
use lab::figure::point::{Graph, Load, Micro, Point, Store, Subject};
use lab::sizes::Sizes;

/// One of each system, and of each load.
fn some() -> Vec<Point> {
    let micro = Load::Micro(Micro { sharing: 40, reads: 50, locality: 20 });
    let store = Load::Store(Store { nodes: 2, gets: 50 });
    let graph = Load::Graph(Graph { nodes: 4, is_small: true });
    vec![
        Point::new(Subject::Concordia, micro),
        Point::new(Subject::HomeOnly, micro),
        Point::new(Subject::Gam, micro),
        Point::new(Subject::Grappa, micro),
        Point::new(Subject::Concordia, store),
        Point::new(Subject::Grappa, store),
        Point::new(Subject::Concordia, graph),
        Point::new(Subject::Grappa, graph),
        Point::new(Subject::PowerGraph, graph),
    ]
}

#[test]
fn a_run_is_the_same_again_on_one_thread_and_on_two() {
    let points = some();
    tiny::a_run_is_the_same_again(&Sizes::TINY, &points, true);
}

/// What a figure shows.
pub(crate) fn shows(report: &FigureReport, _: &[f64]) -> bool {
    !report.claims.is_empty()
}
