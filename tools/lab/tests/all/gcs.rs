//! The figures of GCS at a tiny scale: a run is the same again, and who should be ahead is. What each shows, `claims.rs` asks.

use crate::tiny;

use lab::figure::point::{Buckets, Contend, Load, Point, Subject};
use lab::figure::{FigureReport, Results};
use lab::sizes::Sizes;

fn run(points: &[Point], threads: usize, seed: u64) -> Results {
    tiny::run(&Sizes::TINY, points, threads, seed)
}

const SUBJECTS: [Subject; 4] = [Subject::Gcs, Subject::WithoutLocality, Subject::DataApart, Subject::Layered];

const CONTEND: Contend = Contend { blades: 2, threads: 2, write: true, access: true, critical: 0, len: 1024 };

#[test]
fn a_run_is_the_same_again_on_one_thread_and_on_two() {
    let store = Load::Buckets(Buckets { blades: 2, gets: 50 });
    let points: Vec<Point> = SUBJECTS
        .into_iter()
        .flat_map(|subject| [Load::Contend(CONTEND), store].map(|load| Point::new(subject, load)))
        .collect();
    tiny::a_run_is_the_same_again(&Sizes::TINY, &points, true);
}

/// What a figure shows.
pub(crate) fn shows(report: &FigureReport, heights: &[f64]) -> bool {
    !report.claims.is_empty() && !report.charts.is_empty() && heights.iter().all(|it| *it > 0.0)
}

#[test]
fn a_lock_that_stays_with_its_readers_is_ahead_of_one_that_they_ask_for_each_time() {
    let load = Load::Contend(Contend { write: false, ..CONTEND });
    let points = SUBJECTS.map(|subject| Point::new(subject, load));
    let results = run(&points, 2, 1);
    let [gcs, forgetful, ..] = SUBJECTS.map(|subject| results.at(subject, load).mops());
    assert!(gcs > 2.0 * forgetful, "{gcs} {forgetful}");
}

#[test]
fn every_thread_gets_its_turn_of_a_lock_that_all_write() {
    let points = SUBJECTS.map(|subject| Point::new(subject, Load::Contend(CONTEND)));
    for (point, measured) in run(&points, 2, 1).iter() {
        // Pages that are refused, and asked for again after a pause, come to whoever asks at the right moment.
        let has_pages = matches!(point.subject, Subject::DataApart | Subject::Layered);
        let least = if has_pages { 0.0 } else { 0.5 };
        assert!(measured.least > least, "{point:?}: {}", measured.least);
    }
}
