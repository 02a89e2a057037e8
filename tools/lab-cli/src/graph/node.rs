//! A node of the rack, and what its threads do with the graph; node 0 judges, too.
//!
//! What takes long is begun by one order and asked about by others: so the command hears of every node all the time,
//! can show how far it is, and can be interrupted.
//!
//! What must always hold: one thing at a time is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use apps::graph::input::Edge;
use apps::graph::reference::{PlainGraph, Side};
use apps::graph::{Builder, Control, Error, Graph, Outcome, Partition, Worker, verify};
use rackmem::{GlobalAddr, NodeHandle, block_on};
use random::Random;
use serde::{Deserialize, Serialize};

use super::args::{Edges, Kernel};
use crate::bench::nodes::{Far, Node, Obeyed, Work, answer};

/// What all nodes know from the start.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(super) edges: Edges,
    pub(super) threads: u16,
    pub(super) seed: u64,
    pub(super) kernel: Kernel,
    pub(super) tolerance: f64,
}

/// What the command wants of a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Allocate a graph. Answers its root, or why not.
    Create,
    /// Begin this. Answers nothing.
    Begin(Task),
    /// How far is it? Answers how [`Far`].
    Ask,
    /// What has come here so far? Answers what was [`Counted`](crate::bench::nodes::Counted).
    Count,
}

/// What takes long.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Build the graph with this root: for all nodes.
    Build(u64),
    /// Run the kernel; a search begins at this vertex: for all nodes.
    Run(u32),
    /// Build the same graph in plain memory: for node 0.
    Plain,
    /// Run the kernel in plain Rust, and judge the rack's result: for node 0.
    Judge {
        /// Where the search began.
        source: u32,
        /// How many supersteps the rack took.
        supersteps: u64,
    },
}

/// What a task has come to at a node.
#[derive(Serialize, Deserialize)]
pub(crate) enum Ended {
    Built,
    Ran(Ran),
    /// A vertex from which edges lead, for the seed and this round.
    Plain {
        sources: Vec<u32>,
    },
    Judged(Judged),
    /// Why not.
    Failed(String),
    /// Because another node failed.
    Abandoned,
}

/// How the kernel went at a node: of its slowest thread, and of all.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Ran {
    pub(super) supersteps: u64,
    pub(super) nanos: u64,
    /// Nanoseconds of all threads, and how many of them they waited.
    pub(super) all_nanos: u64,
    pub(super) waited_nanos: u64,
}

/// What the plain kernel has found, and taken.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(super) plain_nanos: u64,
    /// Edges that a superstep looks at, or that a search has found.
    pub(super) edges: u64,
    /// What is wrong with the rack's result.
    pub(super) mistake: Option<String>,
}

/// What a thread hands back.
enum Back {
    /// A worker, as the graph was built or a kernel has ended.
    Worker(Box<Worker>, Option<Outcome>),
    Plain(Arc<PlainGraph>, Vec<u32>),
    Judged(Judged),
}

/// A node with its part of the graph.
pub(crate) struct Part {
    node: Node,
    setup: Setup,
    graph: Option<Graph>,
    workers: Vec<Worker>,
    plain: Option<Arc<PlainGraph>>,
    threads: Vec<JoinHandle<Result<Back, Error>>>,
    /// Edges that were read.
    read: Arc<AtomicU64>,
    control: Arc<Control>,
}

/// Sources that are drawn in advance: one for each round.
const SOURCES: u64 = 1000;

impl Work for Part {
    const NAME: &'static str = "graph";
    type Setup = Setup;
    type Order = Order;

    fn new(node: Node, setup: Setup) -> Self {
        Self {
            node,
            setup,
            graph: None,
            workers: Vec::new(),
            plain: None,
            threads: Vec::new(),
            read: Arc::default(),
            control: Arc::default(),
        }
    }

    fn obey(&mut self, order: Order) -> Obeyed {
        match order {
            Order::Create => answer(self.create().map_err(|error| error.to_string())),
            Order::Begin(task) => {
                self.begin(task)?;
                answer(())
            }
            Order::Ask => answer(self.far()),
            Order::Count => answer(self.node.counted()),
        }
    }
}

impl Part {
    fn create(&self) -> Result<u64, Error> {
        let Setup { edges, threads, seed, .. } = &self.setup;
        let (vertices, nodes) = (edges.input().vertices(), usize::from(self.node.nodes()));
        let partition = Partition::new(vertices, nodes, usize::from(*threads), *seed)?;
        Ok(block_on(Graph::create(&mut self.node.handle(), partition))?.root().bits())
    }

    fn begin(&mut self, task: Task) -> Result<(), Error> {
        let Setup { edges, kernel, tolerance, seed, .. } = self.setup.clone();
        let input = edges.input();
        match task {
            Task::Build(root) => {
                let graph = block_on(Graph::open(&mut self.node.handle(), GlobalAddr::from_bits(root)))?;
                let (parts, threads) = (graph.partition().workers(), graph.partition().threads());
                let first = self.node.id.index() * threads;
                for part in first..first + threads {
                    let edges = input.part(part, parts)?;
                    let builder = Builder::new(&graph, part, edges, input.undirected());
                    let (mem, read) = (self.node.handle(), Arc::clone(&self.read));
                    self.spawn(move || build(mem, builder, &read));
                }
                self.graph = Some(graph);
            }
            Task::Run(source) => {
                for mut worker in std::mem::take(&mut self.workers) {
                    let (mut mem, control) = (self.node.handle(), Arc::clone(&self.control));
                    self.spawn(move || {
                        let outcome = match kernel {
                            Kernel::Pagerank => block_on(worker.pagerank(&mut mem, tolerance, &control)),
                            Kernel::Bfs => block_on(worker.bfs(&mut mem, source, &control)),
                        };
                        Ok(Back::Worker(Box::new(worker), Some(outcome?)))
                    });
                }
            }
            Task::Plain => {
                self.read.store(0, Ordering::Relaxed);
                let read = Arc::clone(&self.read);
                self.spawn(move || {
                    let side = if kernel == Kernel::Bfs { Side::Source } else { Side::Target };
                    let plain = PlainGraph::new(&input, side, &read)?;
                    let mut random = Random::new(seed);
                    let sources = (0..SOURCES).map(|_| source(&plain, &mut random)).collect();
                    Ok(Back::Plain(Arc::new(plain), sources))
                });
            }
            Task::Judge { source, supersteps } => {
                let plain = Arc::clone(self.plain.as_ref().expect("it was built before the kernel ran"));
                let graph = self.graph.clone().expect("it was built before the kernel ran");
                let (mut mem, stored) = (self.node.handle(), input.stored());
                self.spawn(move || {
                    let found = block_on(graph.results(&mut mem))?;
                    let began = Instant::now();
                    let (plain_nanos, judged) = match kernel {
                        Kernel::Pagerank => {
                            let reference = plain.pagerank(tolerance);
                            let nanos = began.elapsed().as_nanos();
                            (nanos, verify::ranks(&found, supersteps, &reference).map(|()| stored))
                        }
                        Kernel::Bfs => {
                            let depths = plain.depths(source);
                            let nanos = began.elapsed().as_nanos();
                            (nanos, verify::parents(&found, source, &plain, &depths))
                        }
                    };
                    let plain_nanos = u64::try_from(plain_nanos).unwrap_or(u64::MAX);
                    let mistake = judged.as_ref().err().map(ToString::to_string);
                    Ok(Back::Judged(Judged { plain_nanos, edges: judged.unwrap_or_default(), mistake }))
                });
            }
        }
        Ok(())
    }

    fn spawn(&mut self, work: impl FnOnce() -> Result<Back, Error> + Send + 'static) {
        self.threads.push(thread::spawn(|| {
            rackmem::ask_for_short_slice();
            work()
        }));
    }

    fn far(&mut self) -> Far<Ended> {
        let done = self.read.load(Ordering::Relaxed) + self.control.supersteps.load(Ordering::Relaxed);
        if self.threads.iter().any(|thread| !thread.is_finished()) {
            return Far { done, ended: None };
        }
        let threads = std::mem::take(&mut self.threads);
        let mut ended = Ended::Built;
        for thread in threads {
            match thread.join().expect("a thread with a part of the graph panicked") {
                Ok(Back::Worker(worker, outcome)) => {
                    self.workers.push(*worker);
                    if let Some(outcome) = outcome {
                        ended = Ended::Ran(Ran::with(&ended, &outcome));
                    }
                }
                Ok(Back::Plain(plain, sources)) => {
                    self.plain = Some(plain);
                    ended = Ended::Plain { sources };
                }
                Ok(Back::Judged(judged)) => ended = Ended::Judged(judged),
                Err(Error::Abandoned) => return Far { done, ended: Some(Ended::Abandoned) },
                Err(error) => return Far { done, ended: Some(Ended::Failed(error.to_string())) },
            }
        }
        Far { done, ended: Some(ended) }
    }
}

impl Ran {
    fn with(before: &Ended, outcome: &Outcome) -> Self {
        let before = if let Ended::Ran(before) = before { *before } else { Self::default() };
        Self {
            supersteps: outcome.supersteps,
            nanos: before.nanos.max(outcome.took.0),
            all_nanos: before.all_nanos + outcome.took.0,
            waited_nanos: before.waited_nanos + outcome.waited.0,
        }
    }
}

fn build<I>(mut mem: NodeHandle, mut builder: Builder<I>, read: &AtomicU64) -> Result<Back, Error>
where
    I: Iterator<Item = Edge>,
{
    block_on(async {
        let mut told = 0;
        loop {
            let more = builder.round(&mut mem).await?;
            read.fetch_add(builder.read() - told, Ordering::Relaxed);
            told = builder.read();
            if !more {
                break;
            }
        }
        let worker = builder.finish(&mut mem).await?;
        Ok(Back::Worker(Box::new(worker), None))
    })
}

/// A vertex from which edges lead: there is one, as there is an edge.
fn source(plain: &PlainGraph, random: &mut Random) -> u32 {
    let vertices = plain.vertices() as u64;
    let first = random.below(vertices);
    let from_there = (first..vertices).chain(0..first).map(|vertex| vertex as u32);
    from_there.into_iter().find(|vertex| plain.degree(*vertex) > 0).expect("a graph has edges")
}
