//! PageRank on any system, to its end.
//!
//! FlowCC runs the engine of `crates/apps` as it is. PowerGraph and Grappa have no coherent memory that it could run on
//! (Grappa has one, but sends an operation for each block of a cache line, which is not how its programs are written), so they
//! run their own engines, in the form in which those were published.
//!
//! A simulated rack sees accesses to memory only. What a processor does besides with an edge and with a vertex is charged
//! by the same two inputs in each system.

use std::cell::RefCell;
use std::rc::Rc;

use apps::graph::{Builder, Control, Error, TOLERANCE, Worker};
use rackmem::{BlockSize, Memory};
use sim::coherence::{Contents, FlowCc};
use sim::rack::{Ended, Handle, Rack, RackReport, Setup, Until};
use sim::system::{System, ThreadId};
use simulated::{Done, SimulatedHandle};

use super::coherence::{self, FlowCcKind};
use super::micro::measured;
use super::subject::{Subject as _, Tally};
use crate::exchange::{Exchange, ExchangeConfig, Port};
use crate::figure::input::Inputs;
use crate::figure::measured::Measured;
use crate::figure::point::{Graph, Subject};
use crate::figure::run::{Interrupted, Watch};
use crate::load::graph::{RandomGraph, Work};
use crate::sizes::Sizes;
use crate::{grappa, powergraph};

/// What each superstep's count is found under.
pub(crate) const SUPERSTEPS: &str = "supersteps";
/// Virtual time between two looks at whoever watches.
const STEP: wire::Nanos = wire::Nanos::from_micros(2_000);
/// What caches have room for besides the graph.
const BESIDE: u64 = 64 << 20;

/// What a run has come to: supersteps, and ranks by vertex.
#[derive(Clone, PartialEq, Debug, Default)]
struct Ranked {
    supersteps: u64,
    ranks: Vec<f64>,
}

/// The base-2 logarithm of the vertices at these sizes: four for each key of the key-value store, or an eighth of that.
pub(crate) const fn scale(sizes: &Sizes, is_small: bool) -> u32 {
    sizes.keys.ilog2() + 2 - 3 * is_small as u32
}

/// Runs a point.
pub(super) fn run(
    (subject, load): (Subject, Graph),
    setup: Setup,
    (sizes, inputs): (&Sizes, &Inputs),
    watch: &dyn Watch,
) -> Result<Measured, Interrupted> {
    // All systems, on any number of nodes, have the same graph.
    let graph = RandomGraph { scale: scale(sizes, load.is_small), seed: GRAPH };
    let (report, ranked) = pagerank(subject, graph, TOLERANCE, setup, inputs, watch)?;
    // Whoever watches counts operations, and these runs do not end after so many.
    if !watch.advance(sizes.warm_up + sizes.operations) {
        return Err(Interrupted);
    }
    let threads = report.operations.len();
    let none = Tally::default();
    Ok(Measured {
        operations: graph.edges() * ranked.supersteps,
        counted: vec![(SUPERSTEPS.to_owned(), ranked.supersteps)],
        least: 0.0,
        ..measured(&report, &none, &none, threads)
    })
}

/// The seed of the graph.
const GRAPH: u64 = 16;

fn pagerank(
    subject: Subject,
    graph: RandomGraph,
    tolerance: f64,
    setup: Setup,
    inputs: &Inputs,
    watch: &dyn Watch,
) -> Result<(RackReport, Ranked), Interrupted> {
    let (nodes, threads, work) = (setup.nodes, setup.threads, inputs.graph);
    let vertices = graph.vertices() as usize;
    match subject {
        Subject::Grappa => {
            let parts = grappa::pagerank::Part::all(graph, nodes * threads);
            let config = grappa::pagerank::exchange(nodes, threads, &inputs.grappa);
            let cores = nodes * threads;
            let mut parts: Vec<_> = parts.into_iter().map(Some).collect();
            let (report, found) = exchanged(setup, config, watch, |port, thread| {
                parts[thread].take().expect("each core has a part").pagerank(port, work, tolerance)
            })?;
            let mut all = Ranked { supersteps: found[0].0, ranks: vec![0.0; vertices] };
            for (core, (_, ranks)) in found.into_iter().enumerate() {
                (0..).zip(ranks).for_each(|(at, rank): (usize, _)| all.ranks[at * cores + core] = rank);
            }
            Ok((report, all))
        }
        Subject::PowerGraph => {
            let parts: Vec<_> = powergraph::cut(graph, nodes, threads)
                .into_iter()
                .map(|node| Rc::new(RefCell::new(node)))
                .collect();
            let costs = inputs.powergraph;
            let (report, supersteps) =
                exchanged(setup, powergraph::exchange(nodes, threads, &costs), watch, |port, thread| {
                    let (node, thread) = (Rc::clone(&parts[thread / threads]), thread % threads);
                    powergraph::pagerank(node, (port, thread), (work, costs), tolerance)
                })?;
            let mut all = Ranked { supersteps: supersteps[0], ranks: vec![0.0; vertices] };
            for (vertex, rank) in parts.iter().flat_map(|node| node.borrow().results().collect::<Vec<_>>()) {
                all.ranks[vertex as usize] = rank;
            }
            Ok((report, all))
        }
        Subject::Concordia | Subject::ByEdge | Subject::Rackmem => {
            let (kind, block) = if subject == Subject::Rackmem {
                (FlowCcKind::Rackmem, BlockSize::new(64 << 10).expect("a power of two"))
            } else {
                (FlowCcKind::Concordia, BlockSize::DEFAULT)
            };
            let work = match subject {
                Subject::ByEdge => Work { edge: work.edge + inputs.flowcc.access, ..work },
                _ => work,
            };
            coherent(graph, tolerance, setup, (kind, block, inputs.flowcc), work, watch)
        }
        other => panic!("{other:?} has no graphs"),
    }
}

/// Runs a program on every thread of an exchange; what each returned.
fn exchanged<T: 'static, F: Future<Output = T> + 'static>(
    setup: Setup,
    config: ExchangeConfig,
    watch: &dyn Watch,
    mut program: impl FnMut(Port, usize) -> F,
) -> Result<(RackReport, Vec<T>), Interrupted> {
    let mut rack = Rack::new(setup, Exchange::new(config));
    on_all_threads(&mut rack, watch, |handle, thread| program(Port::new(handle), thread))
}

/// Runs the engine of `crates/apps` on coherent memory. Building the graph is not measured.
fn coherent(
    graph: RandomGraph,
    tolerance: f64,
    setup: Setup,
    (kind, block, costs): (FlowCcKind, BlockSize, sim::coherence::Costs),
    work: Work,
    watch: &dyn Watch,
) -> Result<(RackReport, Ranked), Interrupted> {
    use apps::graph::{Graph, Partition};
    let (nodes, workers) = (setup.nodes, setup.nodes * setup.threads);
    let partition =
        Partition::new(graph.vertices(), nodes, setup.threads, graph.seed).expect("there are few vertices");
    let memory = Graph::bytes_needed(&partition, graph.edges(), block);
    // All of it has room, as LiveJournal has in the paper's caches, and blocks that meet in one set have, too.
    let cache = BESIDE + 4 * (24 * graph.vertices() + 4 * graph.edges() / nodes as u64);
    let config = coherence::config(&setup, costs, kind, (cache, memory), Contents::Bytes);
    let system = FlowCc::new(sim::coherence::FlowCcConfig { block, ..config });
    let shape = system.shape();
    let mut rack = Rack::new(setup, system);
    let made = rack.run_one(ThreadId(0), move |handle| async move {
        Graph::create(&mut SimulatedHandle::new(handle, shape), partition).await
    });
    let made = made.expect("there is memory for the graph");
    let (_, built) = on_all_threads(&mut rack, watch, |handle, number| {
        let made = made.clone();
        let mem = SimulatedHandle::new(handle, shape).with_work(charged(work));
        async move { build(mem, &made, number, graph.part(number, workers)).await.expect("there is memory") }
    })?;
    rack.measure_from_here();
    let mut built: Vec<_> = built.into_iter().map(Some).collect();
    let (report, outcomes) = on_all_threads(&mut rack, watch, |_, number| {
        let (mut mem, mut worker) = built[number].take().expect("each thread has built its part");
        async move { worker.pagerank(&mut mem, tolerance, &Control::default()).await.expect("nobody fails") }
    })?;
    let results = rack.run_one(ThreadId(0), move |handle| async move {
        made.results(&mut SimulatedHandle::new(handle, shape)).await.expect("the ranks are there")
    });
    let ranks = results.into_iter().map(f64::from_bits).collect();
    Ok((report, Ranked { supersteps: outcomes[0].supersteps, ranks }))
}

async fn build<M: Memory>(
    mut mem: M,
    graph: &apps::graph::Graph,
    number: usize,
    edges: impl Iterator<Item = (u32, u32)>,
) -> Result<(M, Worker), Error> {
    let mut builder = Builder::new(graph, number, edges.map(Ok), true);
    while builder.round(&mut mem).await? {}
    let worker = builder.finish(&mut mem).await?;
    Ok((mem, worker))
}

/// The time of a worker's own work, told by what it does with the memory: it has allocated nothing but its edges, 4 bytes
/// each, and writes a word for each of its vertices in a superstep.
fn charged(work: Work) -> impl FnMut(Done) -> wire::Nanos {
    let mut edges = None;
    move |done| match done {
        Done::Allocated(addr, len) => {
            edges = Some((addr, len));
            wire::Nanos::ZERO
        }
        Done::Read(addr, len) => {
            let is_edges = edges.is_some_and(|(first, all): (wire::GlobalAddr, u64)| {
                first <= addr && addr.bits() < first.bits() + all
            });
            work.of(if is_edges { len / 4 } else { 0 }, 0)
        }
        Done::Written(_, len) => work.of(0, len / 8),
    }
}

/// Puts a worker on every thread and runs them all to their ends; what each returned.
fn on_all_threads<S: System + 'static, T: 'static, F: Future<Output = T> + 'static>(
    rack: &mut Rack<S>,
    watch: &dyn Watch,
    mut worker: impl FnMut(Handle<S>, usize) -> F,
) -> Result<(RackReport, Vec<T>), Interrupted> {
    let setup = rack.setup();
    let threads = setup.nodes * setup.threads;
    let found: Rc<RefCell<Vec<Option<T>>>> = Rc::new(RefCell::new((0..threads).map(|_| None).collect()));
    for thread in 0..threads {
        let found = Rc::clone(&found);
        let id = ThreadId(u16::try_from(thread).expect("fewer than 2^16 threads"));
        rack.spawn(id, |handle| {
            let worker = worker(handle, thread);
            async move {
                let result = worker.await;
                found.borrow_mut()[thread] = Some(result);
            }
        });
    }
    loop {
        let until = rack.now() + STEP;
        let report = rack.run(Until::Time(until));
        if !watch.advance(0) {
            return Err(Interrupted);
        }
        match report.ended {
            Ended::WorkersDone => {
                let found = found.take().into_iter().map(|it| it.expect("it has ended")).collect();
                return Ok((report, found));
            }
            Ended::Time => {}
            other => panic!("every thread comes to its end, and not to {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::run::Unwatched;

    /// Ranks by the plainest loop that there is, until none changes by more than the tolerance.
    fn plain(graph: RandomGraph, tolerance: f64) -> Ranked {
        let count = graph.vertices() as usize;
        let mut neighbours = vec![Vec::new(); count];
        for (from, to) in graph.part(0, 1) {
            neighbours[from as usize].push(to as usize);
            neighbours[to as usize].push(from as usize);
        }
        let mut all = Ranked { supersteps: 0, ranks: vec![1.0; count] };
        loop {
            let value = |other: &usize| all.ranks[*other] / neighbours[*other].len() as f64;
            let new: Vec<f64> =
                neighbours.iter().map(|others| 0.15 + 0.85 * others.iter().map(value).sum::<f64>()).collect();
            let changed = new.iter().zip(&all.ranks).any(|(new, old)| (new - old).abs() > tolerance);
            all = Ranked { supersteps: all.supersteps + 1, ranks: new };
            if !changed {
                return all;
            }
        }
    }

    #[test]
    fn every_system_ranks_the_vertices_as_a_plain_loop_does() {
        let graph = RandomGraph { scale: 9, seed: 3 };
        let expected = plain(graph, 1e-9);
        for subject in [Subject::Concordia, Subject::Rackmem, Subject::Grappa, Subject::PowerGraph] {
            for nodes in [4, 8] {
                let setup = Setup { threads: 4, ..Inputs::declared().setup(nodes) };
                let run = pagerank(subject, graph, 1e-9, setup, &Inputs::declared(), &Unwatched);
                let (report, found) = run.unwrap();
                let worst = found.ranks.iter().zip(&expected.ranks).map(|(a, b)| (a - b).abs());
                let worst = worst.fold(0.0, f64::max);
                assert!(worst < 1e-6, "{subject:?} on {nodes} nodes: {worst}");
                assert!(found.supersteps.abs_diff(expected.supersteps) <= 2, "{subject:?}");
            }
        }
    }
}
