//! Both kernels are right on racks of one to four nodes, on graphs of every form; and what judges them finds mistakes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use apps::graph::input::{Input, Kronecker};
use apps::graph::reference::{PlainGraph, Side};
use apps::graph::verify::{self, Mistake};
use apps::graph::{Builder, Control, Error, Graph, Outcome, Partition, TOLERANCE, UNREACHED, Worker};
use rackmem::{Config, NodeHandle, NodeId, Rack, block_on};
use random::Random;

use super::support::{Replay, seeds};

fn rack(nodes: usize) -> Rack {
    Rack::embedded(Config { nodes, memory: 64 << 20, cache: 8 << 20, ..Config::default() }).unwrap()
}

/// Runs this at all workers, each on a thread; gives what they came to.
fn at_all<W: Send, T: Send>(
    rack: &Rack,
    graph: &Graph,
    workers: Vec<W>,
    work: impl Fn(NodeHandle, W) -> T + Sync,
) -> Vec<T> {
    let threads = graph.partition().threads();
    thread::scope(|scope| {
        let work = &work;
        let start = |(number, worker)| {
            let mem = rack.node(NodeId((number / threads) as u16));
            scope.spawn(move || work(mem, worker))
        };
        let at_work: Vec<_> = workers.into_iter().enumerate().map(start).collect();
        at_work.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}

fn build(rack: &Rack, threads: usize, input: &Input) -> (Graph, Vec<Worker>) {
    let nodes = rack.config().nodes;
    let partition = Partition::new(input.vertices(), nodes, threads, 5).unwrap();
    let graph = block_on(Graph::create(&mut rack.node(NodeId(0)), partition)).unwrap();
    let opened = block_on(Graph::open(&mut rack.node(NodeId(0)), graph.root())).unwrap();
    assert_eq!(opened, graph);
    let parts = nodes * threads;
    let builder = |part| Builder::new(&graph, part, input.part(part, parts).unwrap(), input.undirected());
    let builders = (0..parts).map(builder).collect();
    let built = at_all(rack, &graph, builders, |mut mem, mut builder| {
        block_on(async {
            while builder.round(&mut mem).await? {}
            builder.finish(&mut mem).await
        })
    });
    let workers = built.into_iter().collect::<Result<_, Error>>().unwrap();
    (graph, workers)
}

/// Runs both kernels, and judges them.
fn both_kernels_are_right(nodes: usize, threads: usize, input: &Input, source: u32) {
    let rack = rack(nodes);
    let (graph, mut workers) = build(&rack, threads, input);
    let control = Control::default();
    let mut run = |kernel: &(dyn Fn(&mut NodeHandle, &mut Worker) -> Result<Outcome, Error> + Sync)| {
        let outcomes = at_all(&rack, &graph, workers.iter_mut().collect(), |mut mem, worker| {
            kernel(&mut mem, worker).unwrap()
        });
        assert!(
            outcomes.iter().all(|outcome| outcome.supersteps == outcomes[0].supersteps && !outcome.stopped)
        );
        let results = block_on(graph.results(&mut rack.node(NodeId(0)))).unwrap();
        (outcomes[0].supersteps, results)
    };
    let reference = PlainGraph::new(input, Side::Target, &AtomicU64::default()).unwrap().pagerank(TOLERANCE);
    let (supersteps, ranks) = run(&|mem, worker| block_on(worker.pagerank(mem, TOLERANCE, &control)));
    verify::ranks(&ranks, supersteps, &reference).unwrap();
    let plain = PlainGraph::new(input, Side::Source, &AtomicU64::default()).unwrap();
    let depths = plain.depths(source);
    let (supersteps, parents) = run(&|mem, worker| block_on(worker.bfs(mem, source, &control)));
    let edges = verify::parents(&parents, source, &plain, &depths).unwrap();
    assert!(edges <= input.stored());
    let deepest = depths.iter().flatten().max().unwrap();
    assert_eq!(supersteps, u64::from(*deepest) + 1, "the last one finds nothing");
    // What finds nothing wrong there finds what is made wrong.
    let mut wrong = ranks;
    wrong[source as usize] = (f64::from_bits(wrong[source as usize]) * (1.0 + 1e-6)).to_bits();
    let found = verify::ranks(&wrong, reference.supersteps, &reference);
    assert!(matches!(found, Err(Mistake::Rank { vertex, .. }) if vertex == source), "{found:?}");
    let mut wrong = parents;
    wrong[source as usize] = UNREACHED;
    assert!(matches!(verify::parents(&wrong, source, &plain, &depths), Err(Mistake::Source { .. })));
}

#[test]
fn kernels_are_right_on_a_kronecker_graph_on_one_two_and_four_nodes() {
    let input = Input::Kronecker(Kronecker { scale: 10, edge_factor: 8, seed: 1 });
    for (nodes, threads) in [(1, 1), (1, 3), (2, 2), (4, 1), (4, 2)] {
        both_kernels_are_right(nodes, threads, &input, 1);
    }
}

#[test]
fn kernels_are_right_where_nodes_have_several_segments() {
    let input = Input::Kronecker(Kronecker { scale: 17, edge_factor: 4, seed: 2 });
    both_kernels_are_right(1, 1, &input, 9);
    both_kernels_are_right(2, 1, &input, 9);
}

/// A file of random edges: few or many, with vertices that none names, edges to themselves and edges that are there twice.
struct RandomGraph {
    list: apps::graph::input::EdgeList,
    path: std::path::PathBuf,
}

impl RandomGraph {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let [most_vertices, most_edges] = [12, 14].map(|most| 1 << random.below(most));
        let (vertices, edges) = (1 + random.below(most_vertices), 1 + random.below(most_edges));
        let path = std::env::temp_dir().join(format!("rackmem-graph-{}-{seed}.txt", std::process::id()));
        let text: String =
            (0..edges).map(|_| format!("{}\t{}\n", random.below(vertices), random.below(vertices))).collect();
        std::fs::write(&path, text).unwrap();
        let list = apps::graph::input::EdgeList::scan(&path, 2, &AtomicBool::new(false), |_, _| {});
        Self { list: list.unwrap().unwrap(), path }
    }
}

impl Drop for RandomGraph {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[test]
fn kernels_are_right_on_random_graphs() {
    for seed in seeds(24) {
        let _replay = Replay { file: "graph", test: "kernels_are_right_on_random_graphs", seed };
        let graph = RandomGraph::new(seed);
        let mut random = Random::new(seed ^ 77);
        let (nodes, threads) = (1 + random.below(4) as usize, 1 + random.below(2) as usize);
        let source = random.below(graph.list.vertices) as u32;
        let input = Input::List { list: graph.list.clone(), undirected: random.below(2) == 0 };
        both_kernels_are_right(nodes, threads, &input, source);
    }
}

#[test]
fn wrong_parents_are_found() {
    // 0 -> 1 -> 2 -> 3 -> 4, 0 -> 3, and 5 is reached by nobody.
    let text = "0 1\n1 2\n2 3\n3 4\n0 3\n5 0\n";
    let path = std::env::temp_dir().join(format!("rackmem-graph-{}-wrong.txt", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let list =
        apps::graph::input::EdgeList::scan(&path, 1, &AtomicBool::new(false), |_, _| {}).unwrap().unwrap();
    let plain =
        PlainGraph::new(&Input::List { list, undirected: false }, Side::Source, &AtomicU64::default())
            .unwrap();
    std::fs::remove_file(path).unwrap();
    let depths = plain.depths(0);
    let judged = |parents: [u64; 6]| verify::parents(&parents, 0, &plain, &depths);
    assert_eq!(judged([0, 0, 1, 0, 3, UNREACHED]), Ok(5));
    assert_eq!(judged([1, 0, 1, 0, 3, UNREACHED]), Err(Mistake::Source { parent: 1 }));
    assert_eq!(judged([0, 0, 0, 0, 3, UNREACHED]), Err(Mistake::NoEdge { parent: 0, vertex: 2 }));
    assert_eq!(judged([0, 0, 77, 0, 3, UNREACHED]), Err(Mistake::NoEdge { parent: 77, vertex: 2 }));
    assert_eq!(judged([0, 0, 1, 2, 3, UNREACHED]), Err(Mistake::Depth { parent: 2, vertex: 3 }));
    assert_eq!(judged([0, 0, 1, 0, 3, 0]), Err(Mistake::Reached { vertex: 5, found: true }));
    assert_eq!(judged([0, 0, 1, 0, UNREACHED, UNREACHED]), Err(Mistake::Reached { vertex: 4, found: false }));
}

#[test]
fn all_workers_stop_in_the_same_superstep_when_one_is_asked_to() {
    let rack = rack(2);
    let (graph, mut workers) =
        build(&rack, 2, &Input::Kronecker(Kronecker { scale: 8, edge_factor: 4, seed: 1 }));
    let asked: Vec<_> = [true, false, false, false].into_iter().zip(&mut workers).collect();
    let outcomes = at_all(&rack, &graph, asked, |mut mem, (asked, worker)| {
        let control = Control { stop: AtomicBool::new(asked), ..Control::default() };
        block_on(worker.pagerank(&mut mem, 0.0, &control)).unwrap()
    });
    assert!(outcomes.iter().all(|outcome| outcome.stopped && outcome.supersteps == 1), "{outcomes:?}");
}

#[test]
fn nobody_waits_for_a_worker_that_has_failed() {
    let rack = rack(2);
    let partition = Partition::new(100, 2, 1, 0).unwrap();
    let graph = block_on(Graph::create(&mut rack.node(NodeId(0)), partition)).unwrap();
    // The second one's edges are not those of the graph that was announced.
    let inputs = [vec![Ok((0, 1))], vec![Ok((0, 100))]];
    let builders = inputs.into_iter().enumerate();
    let builders =
        builders.map(|(number, input)| Builder::new(&graph, number, input.into_iter(), false)).collect();
    let failed = AtomicBool::new(false);
    let errors = at_all(&rack, &graph, builders, |mut mem, mut builder| {
        let error = block_on(builder.round(&mut mem)).unwrap_err();
        failed.store(true, Ordering::Relaxed);
        error
    });
    assert_eq!(errors, [Error::Abandoned, Error::NoSuchVertex { vertex: 100, vertices: 100 }]);
}

#[test]
fn memory_that_is_too_small_is_an_error_at_the_one_who_finds_out() {
    let config = Config { nodes: 1, memory: 1 << 20, cache: 1 << 20, ..Config::default() };
    let rack = Rack::embedded(config).unwrap();
    let mut mem = rack.node(NodeId(0));
    let partition = Partition::new(1 << 20, 1, 1, 0).unwrap();
    assert!(Graph::bytes_needed(&partition, 1 << 22, rackmem::BlockSize::DEFAULT) > 16 << 20);
    let error = block_on(Graph::create(&mut mem, partition)).unwrap_err();
    assert!(matches!(error, Error::Memory(_)), "{error}");
}
