//! The figures of RAE at a tiny scale: they run, they say something, and the same thing each time.

use lab::figure::point::{Kernel, Load, Point, Program, Subject};
use lab::figure::run::{Unwatched, measure_all};
use lab::figure::{Results, points_of};
use lab::output::{Document, page};
use lab::rae::FIGURES;
use lab::sizes::Sizes;
use lab::systems::measure::measure;

fn run(points: &[Point], threads: usize, seed: u64) -> Results {
    measure_all(points, threads, seed, |point, seed| measure(point, &Sizes::TINY, seed, &Unwatched)).unwrap()
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
    let digests = [run(&points, 1, 1), run(&points, 2, 1)].map(|results| results.digest());
    assert_eq!(digests, [digests[0]; 2]);
}

#[test]
fn every_figure_reports_on_all_its_points() {
    let results = run(&points_of(&FIGURES), 2, 1);
    for figure in FIGURES {
        let report = figure.report(&results);
        assert!(!report.claims.is_empty(), "{}", report.figure);
        assert!(!(report.charts.is_empty() && report.tables.is_empty()), "{}", report.figure);
        let lines = report.charts.iter().flat_map(|chart| &chart.lines);
        let points = lines.flat_map(|line| line.points.iter().flat_map(|(x, y)| [*x, *y]));
        let cells = report.tables.iter().flat_map(|table| table.rows.iter().flat_map(|(_, row)| row.clone()));
        let ours = report.claims.iter().map(|claim| claim.ours);
        assert!(points.chain(cells).chain(ours).all(f64::is_finite), "{}: {report:?}", report.figure);
    }
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

/// The committed page says what the committed data says.
#[test]
fn the_page_is_that_of_the_data_and_the_reports_follow_from_the_measurements() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let read = |name: &str| std::fs::read_to_string(docs.join(name)).unwrap();
    let of = |figure: &&dyn lab::figure::Figure| {
        Document::from_json(&read(&format!("figures/{}.json", figure.name()))).unwrap()
    };
    let documents: Vec<Document> = FIGURES.iter().map(of).collect();
    assert!(
        read("rae-figures.md") == page::page(&documents, "figures"),
        "docs/rae-figures.md differs from docs/figures: write both with rackmem lab rae"
    );
    for (figure, document) in FIGURES.iter().zip(documents) {
        let again = figure.report(&Results::new(document.measured));
        assert!(again == document.report, "{}: write it with rackmem lab", figure.name());
    }
}
