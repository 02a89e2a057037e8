//! Graphs run on a simulated rack as they are: both kernels are right, and the same seed gives the same run.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use apps::graph::input::{Input, Kronecker};
use apps::graph::reference::{PlainGraph, Side};
use apps::graph::{Builder, Control, Error, Graph, Outcome, Partition, TOLERANCE, verify};
use rackmem::{Memory, NodeId};
use simulated::{Ended, SimulatedConfig, SimulatedRack, Until};

const NODES: usize = 3;
const THREADS: usize = 2;
const SOURCE: u32 = 2;

/// What one worker found: both outcomes, and at worker 0 both results.
type Found = (Outcome, Outcome, Vec<u64>, Vec<u64>);

async fn worker<M: Memory>(mut mem: M, graph: Graph, number: usize, input: Input) -> Result<Found, Error> {
    let mem = &mut mem;
    let edges = input.part(number, NODES * THREADS)?;
    let mut builder = Builder::new(&graph, number, edges, input.undirected());
    while builder.round(mem).await? {}
    let mut worker = builder.finish(mem).await?;
    let ranked = worker.pagerank(mem, TOLERANCE, &Control::default()).await?;
    let ranks = if number == 0 { graph.results(mem).await? } else { Vec::new() };
    let searched = worker.bfs(mem, SOURCE, &Control::default()).await?;
    let parents = if number == 0 { graph.results(mem).await? } else { Vec::new() };
    Ok((ranked, searched, ranks, parents))
}

/// What worker 0 found, and when all were done.
fn run(input: &Input) -> (Found, rackmem::Nanos) {
    let config = SimulatedConfig {
        nodes: NODES,
        threads: THREADS,
        cache: 2 << 20,
        memory: 16 << 20,
        ..SimulatedConfig::default()
    };
    let mut rack = SimulatedRack::new(config).unwrap();
    let partition = Partition::new(input.vertices(), NODES, THREADS, 3).unwrap();
    let graph = rack
        .run_one(NodeId(0), 0, |mut mem| async move { Graph::create(&mut mem, partition).await })
        .unwrap();
    let all = Rc::new(RefCell::new(Vec::new()));
    for number in 0..NODES * THREADS {
        let (graph, input, all) = (graph.clone(), input.clone(), Rc::clone(&all));
        rack.spawn(NodeId((number / THREADS) as u16), number % THREADS, move |mem| async move {
            let found = worker(mem, graph, number, input).await.unwrap();
            all.borrow_mut().push((number, found));
        });
    }
    let report = rack.run(Until::WorkersDone);
    assert_eq!(report.ended, Ended::WorkersDone);
    let mut all = all.take();
    all.sort_by_key(|(number, _)| *number);
    assert_eq!(all.len(), NODES * THREADS);
    (all.swap_remove(0).1, report.time)
}

#[test]
fn kernels_are_right_on_a_simulated_rack_and_a_run_follows_from_its_seed() {
    let input = Input::Kronecker(Kronecker { scale: 9, edge_factor: 6, seed: 4 });
    let (found, time) = run(&input);
    let (ranked, searched, ranks, parents) = &found;
    let reference = PlainGraph::new(&input, Side::Target, &AtomicU64::default()).unwrap().pagerank(TOLERANCE);
    verify::ranks(ranks, ranked.supersteps, &reference).unwrap();
    let plain = PlainGraph::new(&input, Side::Source, &AtomicU64::default()).unwrap();
    verify::parents(parents, SOURCE, &plain, &plain.depths(SOURCE)).unwrap();
    assert!(ranked.took > searched.took, "{found:?}");
    assert_eq!(run(&input), (found, time));
}
