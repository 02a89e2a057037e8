//! Message sequences and timelines; those in docs are what the machines of today make.

use std::path::Path;

use apps::graph::Partition;
use apps::graph::input::{Input, Kronecker};
use lab::explain::superstep::{Timeline, superstep};
use lab::explain::{SCENARIOS, What, find, play, svg, terminal};
use lab::figure::run::Unwatched;
use wire::BlockSize;

#[test]
fn the_pictures_in_the_documentation_are_current() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explain");
    for scenario in SCENARIOS {
        let path = directory.join(format!("{}.svg", scenario.name));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let current = svg::draw(&play(scenario));
        assert!(
            committed == current,
            "docs/explain/{}.svg is out of date: draw it again with\n    cargo lab explain --svg docs/explain",
            scenario.name
        );
    }
    let drawn = std::fs::read_dir(&directory).expect("docs/explain is there").count();
    assert_eq!(drawn, SCENARIOS.len(), "docs/explain holds a picture of each scenario and nothing else");
}

#[test]
fn the_timeline_in_the_documentation_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures/superstep.svg");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let input = Input::Kronecker(Kronecker { scale: 12, edge_factor: 16, seed: 1 });
    let partition = Partition::new(input.vertices(), 4, 2, 1).unwrap();
    let drawn = superstep(&input, partition, BlockSize::DEFAULT, &Unwatched).unwrap().unwrap();
    assert!(
        committed == drawn.svg(),
        "docs/figures/superstep.svg is out of date: draw it again with the command in docs/graph.md"
    );
}

#[test]
fn every_scenario_plays_the_same_twice_and_shows_messages() {
    for scenario in SCENARIOS {
        let chart = play(scenario);
        let messages = chart.steps.iter().filter(|step| matches!(step.what, What::Message { .. })).count();
        assert!(messages >= 2, "{}: {chart:#?}", scenario.name);
        assert_eq!(chart, play(scenario), "{}", scenario.name);
        assert!(!terminal::draw(&chart).is_empty() && svg::draw(&chart).ends_with("</svg>\n"));
    }
}

#[test]
fn names_are_unique() {
    for scenario in SCENARIOS {
        assert!(std::ptr::eq(find(scenario.name).expect("it is there"), scenario), "{}", scenario.name);
    }
}

fn drawn() -> Timeline {
    let input = Input::Kronecker(Kronecker { scale: 10, edge_factor: 8, seed: 1 });
    let partition = Partition::new(input.vertices(), 3, 2, 1).unwrap();
    superstep(&input, partition, BlockSize::DEFAULT, &Unwatched).unwrap().unwrap()
}

#[test]
fn a_timeline_is_the_same_again_and_each_thread_works_and_waits_in_it() {
    let timeline = drawn();
    assert_eq!(timeline, drawn());
    assert_eq!(timeline.work.len(), 6);
    // Each thread has all of its edges once, and 10 ns for each and for each vertex: of the ranks that are written at the
    // beginning, of the new ones, and of the result.
    let all: u64 = timeline.work.iter().flatten().map(|(from, to)| (*to - *from).0).sum();
    let slots = 6 * 1024_u64.div_ceil(6).next_multiple_of(64);
    assert!((10 * (2 * 8 * 1024 + 2 * slots)..=10 * (2 * 8 * 1024 + 4 * slots)).contains(&all), "{all}");
    assert!(timeline.waits.iter().all(|waits| !waits.is_empty()));
    for (work, waits) in timeline.work.iter().zip(&timeline.waits) {
        let mut both: Vec<_> = work.iter().chain(waits).filter(|(from, to)| from < to).collect();
        both.sort_unstable();
        assert!(both.is_sorted_by(|one, next| one.1 <= next.0), "who works does not wait: {both:?}");
    }
    let (works, waits) = timeline.shares();
    assert!(works > 0.05 && waits > 0.05 && works + waits < 1.0, "{works} {waits}");
}

#[test]
fn a_picture_has_each_span_and_each_message_that_has_arrived() {
    let (timeline, svg) = (drawn(), drawn().svg());
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    let arrived = timeline.messages.iter().filter(|sent| sent.handled.is_some_and(|at| at <= timeline.end));
    let blocks = arrived.clone().filter(|sent| sent.has_block).count();
    assert!(blocks >= 6, "three nodes read the values of two others");
    // One more each: the keys.
    assert_eq!(svg.matches("class=\"b\"").count(), blocks + 1);
    let waits = timeline.waits.iter().flatten().filter(|(from, to)| from < to).count();
    assert_eq!(svg.matches("class=\"wait\"").count(), waits + 1);
    assert!(svg.contains("node 2") && !svg.contains("node 3"));
}
