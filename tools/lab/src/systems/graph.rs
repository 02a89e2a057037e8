//! PageRank on any system, to its end.
//!
//! FlowCC runs the engine of `crates/apps` as it is. PowerGraph and Grappa run their own engines, in the form in which
//! those were published. (Grappa's memory could run ours, with a message for each cache line that a thread reads. Nobody
//! programs it like that.)
//!
//! A simulated rack sees accesses to memory only. What a processor does besides with an edge and with a vertex is charged
//! by the same two inputs in each system.

use std::cell::RefCell;
use std::rc::Rc;

use apps::graph::input::Edge;
use apps::graph::{Builder, Control, Error, Partition, TOLERANCE, Worker};
use rackmem::{BlockSize, Memory};
use sim::coherence::{Contents, FlowCc, FlowCcConfig};
use sim::rack::{Rack, RackReport, Setup};
use sim::system::ThreadId;
use simulated::{Done, SimulatedHandle, WorkTime};
use wire::{GlobalAddr, Nanos};

use super::coherence::{self, FlowCcKind};
use super::micro::measured;
use super::subject::{Subject as _, Tally};
use super::threads::on_all_threads;
use crate::exchange::{Exchange, ExchangeConfig, Port};
use crate::figure::input::Inputs;
use crate::figure::measured::Measured;
use crate::figure::point::{Graph, Subject};
use crate::figure::run::{Interrupted, Watch};
use crate::load::graph::{RandomGraph, Work};
use crate::sizes::Sizes;
use crate::{grappa, powergraph};

/// What is counted besides: supersteps, edges that were looked at in all of them, threads, and what all ranks come to.
pub(crate) const SUPERSTEPS: &str = "supersteps";
pub(crate) const LOOKED_AT: &str = "edges looked at";
pub(crate) const THREADS: &str = "threads";
pub(crate) const RANKS: &str = "sum of ranks";
/// The seed of the graph. All systems, on any number of nodes, have the same one.
const GRAPH: u64 = 16;
/// What caches have room for besides the graph.
const BESIDE: u64 = 64 << 20;

/// What a run has come to.
pub struct Ranked {
    report: RackReport,
    /// What FlowCC has counted before and after it.
    tally: [Tally; 2],
    /// How many there were.
    pub supersteps: u64,
    looked_at: u64,
    /// By vertex.
    pub ranks: Vec<f64>,
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
    let graph = RandomGraph { scale: scale(sizes, load.is_small), seed: GRAPH };
    let ranked = pagerank(subject, graph, TOLERANCE, setup, inputs, watch)?;
    // Whoever watches counts operations, and these runs do not end after so many.
    if !watch.advance(sizes.warm_up + sizes.operations) {
        return Err(Interrupted);
    }
    let Ranked { report, tally: [before, after], supersteps, looked_at, ranks } = ranked;
    let (threads, sum) = (report.operations.len(), ranks.iter().sum::<f64>().round() as u64);
    let counts = [(SUPERSTEPS, supersteps), (LOOKED_AT, looked_at), (THREADS, threads as u64), (RANKS, sum)];
    Ok(Measured {
        operations: graph.edges() * supersteps,
        counted: counts.map(|(name, count)| (name.to_owned(), count)).into(),
        least: 0.0,
        ..measured(&report, &before, &after, threads)
    })
}

/// Ranks the vertices of a graph on a system, until no rank changes by more than the tolerance.
///
/// # Errors
/// If whoever watches has ended it.
///
/// # Panics
/// If the system has no graphs.
pub fn pagerank(
    subject: Subject,
    graph: RandomGraph,
    tolerance: f64,
    setup: Setup,
    inputs: &Inputs,
    watch: &dyn Watch,
) -> Result<Ranked, Interrupted> {
    let (nodes, threads, work) = (setup.nodes, setup.threads, inputs.graph);
    let mut ranks = vec![0.0; graph.vertices() as usize];
    match subject {
        Subject::Grappa => {
            let cores = nodes * threads;
            let mut parts: Vec<_> = grappa::pagerank::Part::all(graph, cores).into_iter().map(Some).collect();
            let config = grappa::pagerank::exchange(nodes, threads, &inputs.grappa);
            let (report, found) = exchanged(setup, config, watch, |port, core| {
                parts[core].take().expect("each core has a part").pagerank(port, work, tolerance)
            })?;
            let (supersteps, looked_at) = (found[0].0, found.iter().map(|(_, sent, _)| sent).sum());
            for (core, (.., of_core)) in found.into_iter().enumerate() {
                (core..).step_by(cores).zip(of_core).for_each(|(vertex, rank)| ranks[vertex] = rank);
            }
            Ok(Ranked { report, tally: Default::default(), supersteps, looked_at, ranks })
        }
        Subject::PowerGraph => {
            let parts: Vec<_> = powergraph::cut(graph, nodes, threads)
                .into_iter()
                .map(|node| Rc::new(RefCell::new(node)))
                .collect();
            let costs = inputs.powergraph;
            let config = powergraph::exchange(nodes, threads, &costs);
            let (report, found) = exchanged(setup, config, watch, |port, thread| {
                let (node, thread) = (Rc::clone(&parts[thread / threads]), thread % threads);
                powergraph::pagerank(node, (port, thread), (work, costs), tolerance)
            })?;
            for node in &parts {
                node.borrow().results().for_each(|(vertex, rank)| ranks[vertex as usize] = rank);
            }
            let (supersteps, looked_at) = (found[0].0, found.iter().map(|(_, gathered)| gathered).sum());
            Ok(Ranked { report, tally: Default::default(), supersteps, looked_at, ranks })
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
            let partition = Partition::new(graph.vertices(), nodes, threads, graph.seed);
            let partition = partition.expect("there are few vertices");
            let room = room(&partition, graph.edges(), block);
            let config = coherence::config(&setup, inputs.flowcc, kind, room, Contents::Bytes);
            let part = |number| graph.part(number, nodes * threads).map(Ok);
            let mut built = Built::new(
                setup,
                FlowCcConfig { block, ..config },
                (partition, true),
                (part, |_| Box::new(charged(work))),
                watch,
            )?;
            built.rack.measure_from_here();
            let before = built.rack.with_system(|system| system.tally());
            let (report, supersteps) = built.pagerank(tolerance, false, watch)?;
            let after = built.rack.with_system(|system| system.tally());
            let looked_at = graph.edges() * supersteps;
            Ok(Ranked { report, tally: [before, after], supersteps, looked_at, ranks: built.ranks() })
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

/// Cache and memory of a node. All of the graph has room, as LiveJournal has in the paper's caches; and so do blocks that meet
/// in one set of a cache.
pub(crate) fn room(partition: &Partition, edges: u64, block: BlockSize) -> (u64, u64) {
    let cache = BESIDE + 4 * (24 * partition.vertices() + 4 * edges / partition.nodes() as u64);
    (cache, apps::graph::Graph::bytes_needed(partition, edges, block))
}

/// A rack with a graph in its memory, and a worker for each thread.
pub(crate) struct Built {
    pub(crate) rack: Rack<FlowCc>,
    graph: apps::graph::Graph,
    workers: Vec<Option<(SimulatedHandle<FlowCc>, Worker)>>,
}

impl Built {
    /// Builds it: each worker from its part of the edges, which are there in both directions if they are `undirected`.
    pub(crate) fn new<E: Iterator<Item = Edge> + 'static>(
        setup: Setup,
        config: FlowCcConfig,
        (partition, undirected): (Partition, bool),
        (part, work): (impl Fn(usize) -> E, impl Fn(usize) -> WorkTime),
        watch: &dyn Watch,
    ) -> Result<Self, Interrupted> {
        let system = FlowCc::new(config);
        let shape = system.shape();
        let mut rack = Rack::new(setup, system);
        let graph = rack.run_one(ThreadId(0), move |handle| async move {
            apps::graph::Graph::create(&mut SimulatedHandle::new(handle, shape), partition).await
        });
        let graph = graph.expect("there is memory for the graph");
        let (_, workers) = on_all_threads(&mut rack, watch, |handle, number| {
            let mem = SimulatedHandle::new(handle, shape).with_work(work(number));
            let builder = Builder::new(&graph, number, part(number), undirected);
            async move { Some(build(mem, builder).await.expect("there is memory, and edges are right")) }
        })?;
        Ok(Self { rack, graph, workers })
    }

    /// Runs PageRank, or one superstep of it. Gives the number of supersteps.
    pub(crate) fn pagerank(
        &mut self,
        tolerance: f64,
        once: bool,
        watch: &dyn Watch,
    ) -> Result<(RackReport, u64), Interrupted> {
        let workers = &mut self.workers;
        let (report, ran) = on_all_threads(&mut self.rack, watch, |_, number| {
            let (mut mem, mut worker) = workers[number].take().expect("each thread has built its part");
            async move {
                // All stop at the end of a superstep if one of them is asked to.
                let control = Control { stop: once.into(), ..Control::default() };
                let outcome = worker.pagerank(&mut mem, tolerance, &control).await.expect("nobody fails");
                (outcome.supersteps, (mem, worker))
            }
        })?;
        let supersteps = ran[0].0;
        self.workers = ran.into_iter().map(|(_, worker)| Some(worker)).collect();
        Ok((report, supersteps))
    }

    fn ranks(mut self) -> Vec<f64> {
        let (graph, shape) = (self.graph, self.rack.with_system(|system| system.shape()));
        let results = self.rack.run_one(ThreadId(0), move |handle| async move {
            graph.results(&mut SimulatedHandle::new(handle, shape)).await.expect("the ranks are there")
        });
        results.into_iter().map(f64::from_bits).collect()
    }
}

async fn build<M: Memory, E: Iterator<Item = Edge>>(
    mut mem: M,
    mut builder: Builder<E>,
) -> Result<(M, Worker), Error> {
    while builder.round(&mut mem).await? {}
    let worker = builder.finish(&mut mem).await?;
    Ok((mem, worker))
}

/// The time of a worker's own work, told by what it does with the memory: it has allocated nothing but its edges, 4 bytes
/// each, and writes a word for each of its vertices in a superstep.
pub(crate) fn charged(work: Work) -> impl FnMut(Nanos, Done) -> Nanos {
    let mut edges = None;
    move |_, done| match done {
        Done::Allocated(addr, len) => {
            edges = Some((addr, len));
            Nanos::ZERO
        }
        Done::Read(addr, len) => {
            let is_edges = edges.is_some_and(|(first, all): (GlobalAddr, u64)| {
                first <= addr && addr.bits() < first.bits() + all
            });
            work.of(if is_edges { len / 4 } else { 0 }, 0)
        }
        Done::Written(_, len) => work.of(0, len / 8),
        // At barriers.
        Done::InPlace(..) => Nanos::ZERO,
    }
}
