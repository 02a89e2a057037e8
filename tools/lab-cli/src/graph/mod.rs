//! `rackmem-lab graph`: PageRank or a breadth-first search on a rack, beside the same kernel in plain Rust on one thread.
//!
//! The edges are read from a file, or generated; every thread of every node builds a part of the graph. Then the rack
//! and plain Rust take turns, and every result of the rack is judged by the plain one. Racks in one process and racks
//! of processes are those of `rackmem-lab bench` (`bench/nodes.rs`).
//!
//! | file | holds |
//! | --- | --- |
//! | `args` | flags; whether there is memory for what they ask |
//! | `node` | what a node does |
//! | `report` | what comes out |

mod args;
mod node;
mod report;

use std::ops::Add;
use std::path::Path;
use std::time::Instant;

use apps::graph::Partition;
use apps::graph::input::Input;
use lab::explain::superstep::superstep;
use rackmem::BlockSize;

use self::node::{Ended, Judged, Order, Ran, Setup, Task};
use self::report::{GraphReport, Round};
use crate::bench::nodes::{Counted, Nodes};
use crate::figure::Quiet;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::ycsb::progress::Progress;

pub(crate) use args::Args;
pub(crate) use node::Part;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    args.check()?;
    let interrupt = Interrupt::listen()?;
    let edges = args.edges(&interrupt)?;
    let input = edges.input();
    let partition = args.partition(&input)?;
    let spec = args.rack(&input, &partition)?;
    if let Some(path) = &args.timeline {
        // A simulated rack takes as much memory.
        return timeline(&input, partition, args.block_size, path, interrupt);
    }
    let Args { kernel, threads, seed, tolerance, transport, .. } = *args;
    let setup = Setup { edges, threads, seed, kernel, tolerance };
    let nodes = Nodes::<Part>::start(transport, &spec, &setup, &interrupt)?;
    let mut rack = GraphRack { nodes, count: args.nodes, interrupt: &interrupt };
    let build_seconds = rack.build(&input)?;
    let sources = rack.plain(&input)?;
    let mut rounds = Vec::new();
    for drawn in sources.into_iter().take(args.rounds as usize) {
        let source = args.source.unwrap_or(drawn);
        let before = rack.count()?;
        let ran = rack.kernel(source)?;
        let after = rack.count()?;
        let judged = rack.judge(source, ran.supersteps)?;
        if let Some(mistake) = judged.mistake {
            return Err(Fault::failed(format_args!("the result is wrong: {mistake}")));
        }
        rounds.push(Round::of((kernel, source), &ran, &judged, after - before, transport));
    }
    let report = GraphReport {
        kernel,
        vertices: input.vertices(),
        stored_edges: input.stored(),
        nodes: args.nodes,
        threads,
        transport,
        block_bytes: args.block_size.bytes(),
        build_seconds,
        build_edges_per_second: input.edges() as f64 / build_seconds,
        verified: true,
        rounds,
    };
    output::show(args.json, "graph", &report, || report.text())
}

/// Draws a superstep on a simulated rack.
fn timeline(
    input: &Input,
    partition: Partition,
    block: BlockSize,
    path: &Path,
    interrupt: Interrupt,
) -> Result<(), Fault> {
    let drawn = superstep(input, partition, block, &Quiet(interrupt)).map_err(Fault::usage)?;
    let drawn = drawn.ok_or(Fault::Interrupted)?;
    std::fs::write(path, drawn.svg()).map_err(|error| {
        Fault::usage(format_args!(
            "cannot write {}: {error}; choose another path with --timeline",
            path.display()
        ))
    })?;
    let (works, waits) = drawn.shares();
    let (works, waits) = (works * 100.0, waits * 100.0);
    output::print(&format!("{}\n", drawn.title))?;
    output::print(&format!(
        "threads work on edges and vertices for {works:.0} % of their time, and wait for blocks for {waits:.0} %\n"
    ))
}

/// A rack that works on one graph.
struct GraphRack<'a> {
    nodes: Nodes<Part>,
    count: u16,
    interrupt: &'a Interrupt,
}

impl GraphRack<'_> {
    /// Builds the graph; gives the seconds that it took.
    fn build(&mut self, input: &Input) -> Result<f64, Fault> {
        let began = Instant::now();
        let root: Result<u64, String> = self.nodes.ask(0, Order::Create)?;
        let root = root.map_err(|why| Fault::failed(format_args!("cannot allocate the graph: {why}")))?;
        let mut progress = Progress::start("edges read".to_owned(), input.edges());
        let done = self.begin(0..self.count, Task::Build(root), |done| progress.show(done));
        let took = began.elapsed();
        let ended = done?;
        progress.finish(input.edges(), took);
        ended.into_iter().try_for_each(|ended| match ended {
            Ended::Built => Ok(()),
            other => Err(unexpected(&other)),
        })?;
        Ok(took.as_secs_f64())
    }

    /// Builds the same graph in plain memory of node 0; gives vertices from which searches may begin.
    fn plain(&mut self, input: &Input) -> Result<Vec<u32>, Fault> {
        // It reads them twice.
        let (began, all) = (Instant::now(), 2 * input.edges());
        let mut progress = Progress::start("edges of the plain graph".to_owned(), all);
        let ended = self.begin(0..1, Task::Plain, |done| progress.show(done))?.pop();
        progress.finish(all, began.elapsed());
        match ended {
            Some(Ended::Plain { sources }) => Ok(sources),
            other => Err(other.map_or_else(|| Fault::failed("no answer"), |other| unexpected(&other))),
        }
    }

    /// Runs the kernel on all nodes.
    fn kernel(&mut self, source: u32) -> Result<Ran, Fault> {
        let mut all = Ran::default();
        for ended in self.begin(0..self.count, Task::Run(source), |_| {})? {
            let Ended::Ran(ran) = ended else { return Err(unexpected(&ended)) };
            all.supersteps = ran.supersteps;
            all.nanos = all.nanos.max(ran.nanos);
            all.all_nanos += ran.all_nanos;
            all.waited_nanos += ran.waited_nanos;
        }
        Ok(all)
    }

    fn judge(&mut self, source: u32, supersteps: u64) -> Result<Judged, Fault> {
        match self.begin(0..1, Task::Judge { source, supersteps }, |_| {})?.pop() {
            Some(Ended::Judged(judged)) => Ok(judged),
            other => Err(other.map_or_else(|| Fault::failed("no answer"), |other| unexpected(&other))),
        }
    }

    fn count(&mut self) -> Result<Counted, Fault> {
        let of_nodes: Vec<Counted> = self.nodes.ask_all(&Order::Count)?;
        Ok(of_nodes.into_iter().fold(Counted::default(), Counted::add))
    }

    /// Begins a task at these nodes, and waits until it has ended at all of them.
    fn begin(
        &mut self,
        nodes: std::ops::Range<u16>,
        task: Task,
        show: impl FnMut(u64),
    ) -> Result<Vec<Ended>, Fault> {
        let orders = [Order::Begin(task), Order::Ask];
        let mut ended: Vec<Ended> = self.nodes.until_ended(nodes, orders, self.interrupt, show)?;
        // What failed first is why the others gave up.
        ended.sort_by_key(|ended| !matches!(ended, Ended::Failed(_)));
        match ended.first() {
            Some(Ended::Failed(why)) => Err(Fault::failed(why)),
            _ => Ok(ended),
        }
    }
}

/// A node that ended with something else than what it was asked for.
fn unexpected(ended: &Ended) -> Fault {
    Fault::failed(match ended {
        Ended::Abandoned => "a node has failed, and did not say why",
        _ => "a node has done something else than it was asked to",
    })
}
