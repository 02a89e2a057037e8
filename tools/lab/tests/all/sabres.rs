//! The figures of SABRes at a tiny scale: a run is the same again, and who should be ahead is. What each shows, `claims.rs` asks.

use crate::tiny;

use lab::figure::point::{Load, Objects, Point, Subject, Use};
use lab::figure::{FigureReport, Results};
use lab::sizes::Sizes;

fn run(points: &[Point], threads: usize, seed: u64) -> Results {
    tiny::run(&Sizes::TINY, points, threads, seed)
}

const SUBJECTS: [Subject; 5] =
    [Subject::Sabre, Subject::VersionFirst, Subject::LineVersions, Subject::LockAndRead, Subject::RemoteRead];

#[test]
fn a_run_is_the_same_again_on_one_thread_and_on_two() {
    let load =
        Load::Objects(Objects { work: Use::Clean, bytes: 512, readers: 16, outstanding: 1, writers: 8 });
    let points = SUBJECTS.map(|subject| Point::new(subject, load));
    tiny::a_run_is_the_same_again(&Sizes::TINY, &points, true);
}

/// What a figure shows.
pub(crate) fn shows(report: &FigureReport, heights: &[f64]) -> bool {
    !report.claims.is_empty() && !report.charts.is_empty() && heights.iter().all(|it| *it > 0.0)
}

#[test]
fn a_check_where_the_memory_is_is_ahead_of_one_in_software() {
    let load =
        Load::Objects(Objects { work: Use::Clean, bytes: 8192, readers: 4, outstanding: 1, writers: 0 });
    let points = SUBJECTS.map(|subject| Point::new(subject, load));
    let results = run(&points, 2, 1);
    let [sabre, _, versions, locks, _] = SUBJECTS.map(|subject| results.at(subject, load).mops());
    assert!(sabre > 1.3 * versions && sabre > locks, "{sabre} {versions} {locks}");
}
