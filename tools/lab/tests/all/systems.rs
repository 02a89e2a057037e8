//! Systems that are compared, on loads that take all of their machines.

use lab::figure::input::Inputs;
use lab::figure::point::{Load, Point, Subject, Transactions};
use lab::figure::run::Unwatched;
use lab::load::graph::RandomGraph;
use lab::sizes::Sizes;
use lab::systems::graph::pagerank;
use lab::systems::measure::measure;
use sim::rack::Setup;

#[test]
fn nobody_aborts_in_a_warehouse_of_its_own_and_some_do_in_those_of_others() {
    // 200 transactions: a thirtieth of the accesses of a micro benchmark.
    let sizes = Sizes { operations: 6_000, ..Sizes::TINY };
    for subject in [Subject::Concordia, Subject::GamLarge] {
        let run = |distribution| {
            let point = Point::new(subject, Load::Transactions(Transactions { distribution }));
            measure(&point, &sizes, &Inputs::declared(), 1, &Unwatched).unwrap()
        };
        let (alone, together) = (run(0), run(100));
        assert_eq!((alone.operations, together.operations), (200, 200));
        assert_eq!(alone.count("aborted"), 0, "{subject:?}");
        assert!(together.count("aborted") > 0 && together.mops() < alone.mops(), "{subject:?}");
    }
}

/// Ranks by the plainest loop that there is, until none changes by more than the tolerance.
fn plain(graph: RandomGraph, tolerance: f64) -> (u64, Vec<f64>) {
    let count = graph.vertices() as usize;
    let mut neighbours = vec![Vec::new(); count];
    for (from, to) in graph.part(0, 1) {
        neighbours[from as usize].push(to as usize);
        neighbours[to as usize].push(from as usize);
    }
    let (mut supersteps, mut ranks) = (0, vec![1.0; count]);
    loop {
        let value = |other: &usize| ranks[*other] / neighbours[*other].len() as f64;
        let new: Vec<f64> =
            neighbours.iter().map(|others| 0.15 + 0.85 * others.iter().map(value).sum::<f64>()).collect();
        let changed = new.iter().zip(&ranks).any(|(new, old)| (new - old).abs() > tolerance);
        (supersteps, ranks) = (supersteps + 1, new);
        if !changed {
            return (supersteps, ranks);
        }
    }
}

#[test]
fn every_system_ranks_the_vertices_as_a_plain_loop_does() {
    let graph = RandomGraph { scale: 9, seed: 3 };
    let (supersteps, expected) = plain(graph, 1e-9);
    for subject in [Subject::Concordia, Subject::Rackmem, Subject::Grappa, Subject::PowerGraph] {
        for nodes in [4, 8] {
            let setup = Setup { threads: 4, ..Inputs::declared().setup(nodes) };
            let run = pagerank(subject, graph, 1e-9, setup, &Inputs::declared(), &Unwatched);
            let found = run.unwrap();
            let worst = found.ranks.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            let worst = worst.fold(0.0, f64::max);
            assert!(worst < 1e-6, "{subject:?} on {nodes} nodes: {worst}");
            assert!(found.supersteps.abs_diff(supersteps) <= 2, "{subject:?}");
        }
    }
}
