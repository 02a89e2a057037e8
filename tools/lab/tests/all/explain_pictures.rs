//! The message sequences in docs/explain are those that the machines of today make.

use std::path::Path;

use apps::graph::Partition;
use apps::graph::input::{Input, Kronecker};
use lab::explain::superstep::superstep;
use lab::explain::{self, SCENARIOS};
use lab::figure::run::Unwatched;
use wire::BlockSize;

#[test]
fn the_pictures_in_the_documentation_are_current() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explain");
    for scenario in SCENARIOS {
        let path = directory.join(format!("{}.svg", scenario.name));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let current = explain::svg::draw(&explain::play(scenario));
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
