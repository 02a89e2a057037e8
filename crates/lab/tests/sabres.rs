//! The figures of SABRes at a tiny scale: they run, they say something, and the same thing each time.

use lab::figure::point::{Load, Objects, Point, Subject, Use};
use lab::figure::run::{Unwatched, measure_all};
use lab::figure::{Results, points_of};
use lab::sabres::FIGURES;
use lab::sizes::Sizes;
use lab::systems::measure::measure;

fn run(points: &[Point], threads: usize, seed: u64) -> Results {
    measure_all(points, threads, seed, |point, seed| measure(point, &Sizes::TINY, seed, &Unwatched)).unwrap()
}

const SUBJECTS: [Subject; 5] =
    [Subject::Sabre, Subject::VersionFirst, Subject::LineVersions, Subject::LockAndRead, Subject::RemoteRead];

#[test]
fn a_run_is_the_same_again_on_one_thread_and_on_two() {
    let load =
        Load::Objects(Objects { work: Use::Clean, bytes: 512, readers: 16, outstanding: 1, writers: 8 });
    let points = SUBJECTS.map(|subject| Point::new(subject, load));
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
fn a_check_where_the_memory_is_is_ahead_of_one_in_software() {
    let load =
        Load::Objects(Objects { work: Use::Clean, bytes: 8192, readers: 4, outstanding: 1, writers: 0 });
    let points = SUBJECTS.map(|subject| Point::new(subject, load));
    let results = run(&points, 2, 1);
    let [sabre, _, versions, locks, _] = SUBJECTS.map(|subject| results.at(subject, load).mops());
    assert!(sabre > 1.3 * versions && sabre > locks, "{sabre} {versions} {locks}");
}
