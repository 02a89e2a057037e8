//! The figures of RAE at a tiny scale: a run is the same again, and who should be ahead is. What each shows, `claims.rs` asks.

use crate::tiny;

use lab::figure::point::{Kernel, Load, Point, Program, Subject};
use lab::figure::{FigureReport, Results};
use lab::sizes::Sizes;

fn run(points: &[Point], threads: usize, seed: u64) -> Results {
    tiny::run(&Sizes::TINY, points, threads, seed)
}

const SUBJECTS: [Subject; 3] = [Subject::Rae, Subject::LibraryNear, Subject::LibraryTcp];

const fn load(kernel: Kernel) -> Load {
    Load::Program(Program { kernel, nodes: 3 })
}

#[test]
fn a_run_is_the_same_again_on_one_thread_and_on_two() {
    let mut points: Vec<Point> = SUBJECTS
        .into_iter()
        .flat_map(|subject| [Kernel::Scatter, Kernel::Cc].map(|kernel| Point::new(subject, load(kernel))))
        .collect();
    points.push(Point::new(Subject::RaeUnmerged, load(Kernel::Words(50))));
    points.push(Point::new(Subject::Rae, Load::Landing(Program { kernel: Kernel::Scatter, nodes: 3 })));
    tiny::a_run_is_the_same_again(&Sizes::TINY, &points, false);
}

/// What a figure shows.
pub(crate) fn shows(report: &FigureReport, _: &[f64]) -> bool {
    !report.claims.is_empty()
}

#[test]
fn both_paths_make_the_same_accesses_and_only_one_is_charged_for_a_library() {
    let points = SUBJECTS.map(|subject| Point::new(subject, load(Kernel::Gather)));
    let results = run(&points, 2, 1);
    let [ours, near, tcp] = SUBJECTS.map(|subject| results.at(subject, load(Kernel::Gather)));
    assert_eq!([ours, near, tcp].map(|it| it.count("atomics")), [3 * 3 * 16; 3]);
    assert_eq!(ours.count("charged"), 0);
    assert!(0 < near.count("charged") && near.count("charged") < tcp.count("charged"));
    assert!(ours.count("cycles") < near.count("cycles") && near.count("cycles") < tcp.count("cycles"));
}

#[test]
fn merging_makes_additions_of_all_nodes_to_one_word_four_times_as_fast() {
    let load = Load::Program(Program { kernel: Kernel::Words(100), nodes: 64 });
    let engines = [Subject::Rae, Subject::RaeUnmerged];
    let results = run(&engines.map(|subject| Point::new(subject, load)), 2, 1);
    let [with, without] = engines.map(|subject| results.at(subject, load).mops());
    assert!(with > 4.0 * without, "{with} and {without}");
}
