//! The figures of GCS at a tiny scale: they run, they say something, and the same thing each time.

use lab::figure::point::{Buckets, Contend, Load, Point, Subject};
use lab::figure::run::{Unwatched, measure_all};
use lab::figure::{Results, points_of};
use lab::gcs::FIGURES;
use lab::sizes::Sizes;
use lab::systems::measure::measure;

fn run(points: &[Point], threads: usize, seed: u64) -> Results {
    measure_all(points, threads, seed, |point, seed| measure(point, &Sizes::TINY, seed, &Unwatched)).unwrap()
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
        assert!(!report.claims.is_empty() && !report.charts.is_empty(), "{}", report.figure);
        for line in report.charts.iter().flat_map(|chart| &chart.lines) {
            assert!(
                line.points.iter().all(|(x, y)| x.is_finite() && y.is_finite() && *y > 0.0),
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
