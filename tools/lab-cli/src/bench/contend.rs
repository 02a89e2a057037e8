//! `rackmem-lab bench contend`: threads on all nodes change one word, as fast as they can.
//!
//! Every change needs the block on its own node, alone. What counts is that throughput does not collapse as nodes
//! and threads are added, and that no thread starves.

use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rackmem::{Config, Directory, Discipline, NodeId};
use serde::Serialize;

use super::rounds::{failed, rack, table, until};
use super::samples::{Recorder, Samples};
use cli::fault::Fault;
use cli::output;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Numbers of nodes to measure
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8")]
    nodes: Vec<u16>,

    /// Numbers of threads per node to measure
    #[arg(long, value_delimiter = ',', default_value = "1,4")]
    threads: Vec<u16>,

    /// Milliseconds per measurement
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    millis: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Figure {
    directory: &'static str,
    nodes: u16,
    threads_per_node: u16,
    changes_per_second: f64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    worst_ns: u64,
    /// The share of the thread that got least, against an equal share.
    least_share: f64,
    /// The most refusals that one change saw before it was granted.
    worst_refusals: u64,
}

#[derive(Debug, Serialize)]
struct ContendReport {
    millis: u64,
    figures: Vec<Figure>,
}

fn measure(
    args: &Args,
    directory: Directory,
    queue: bool,
    nodes: u16,
    threads: u16,
) -> Result<Figure, Fault> {
    let config = Config {
        nodes: usize::from(nodes),
        directory,
        queue,
        cache: 1 << 20,
        memory: 4 << 20,
        ..Config::default()
    };
    let rack = rack(config)?;
    let word = rack.node(NodeId(0)).alloc(8, NodeId(nodes - 1), Discipline::Coherent).map_err(failed)?;
    let handles = (0..nodes * threads).map(|thread| rack.node(NodeId(thread % nodes)));
    let start = Barrier::new(usize::from(nodes * threads));
    let done = until(Duration::from_millis(args.millis), handles, |mut node, stop| {
        let mut times = Recorder::new();
        start.wait();
        let all = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            node.update(word, 8, |window| window.set_word(0, window.word(0) + 1))?;
            times.record(began.elapsed());
        }
        Ok(times.samples(all.elapsed()))
    })
    .map_err(failed)?;
    let mut all = Recorder::new();
    done.iter().for_each(|samples| all.add(samples));
    let counts: Vec<u64> = done.iter().map(Samples::count).collect();
    let changes: u64 = counts.iter().sum();
    let last = rack.node(NodeId(0)).read_word(word).map_err(failed)?;
    if last != changes {
        return Err(Fault::failed(format_args!(
            "{changes} changes were made, and {last} arrived: a bug in rackmem"
        )));
    }
    let least = counts.iter().min().copied().unwrap_or(0);
    Ok(Figure {
        directory: match (directory, queue) {
            (Directory::Switch, true) => "switch, queue",
            (Directory::Switch, false) => "switch",
            _ => "home",
        },
        nodes,
        threads_per_node: threads,
        changes_per_second: done.iter().map(Samples::rate).sum(),
        p50_ns: all.quantile(0.5),
        p99_ns: all.quantile(0.99),
        p999_ns: all.quantile(0.999),
        worst_ns: all.quantile(1.0),
        least_share: least as f64 * counts.len() as f64 / changes.max(1) as f64,
        worst_refusals: rack.counters().protocol().worst_refusals,
    })
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    let mut figures = Vec::new();
    for (directory, queue) in
        [(Directory::Switch, false), (Directory::Switch, true), (Directory::Home, false)]
    {
        for nodes in &args.nodes {
            for threads in &args.threads {
                if *nodes == 0 || *threads == 0 || usize::from(*threads) * usize::from(*nodes) > 512 {
                    return Err(Fault::usage(format_args!(
                        "{nodes} nodes with {threads} threads: choose 1 to 64 nodes, and at most 512 threads in all"
                    )));
                }
                figures.push(measure(args, directory, queue, *nodes, *threads)?);
            }
        }
    }
    let report = ContendReport { millis: args.millis, figures };
    output::show(args.json, "bench contend", &report, || {
        let rows: Vec<Vec<String>> = report
            .figures
            .iter()
            .map(|figure| {
                vec![
                    figure.directory.to_owned(),
                    figure.nodes.to_string(),
                    figure.threads_per_node.to_string(),
                    format!("{:.2} M/s", figure.changes_per_second / 1e6),
                    format!("{} ns", figure.p50_ns),
                    format!("{} ns", figure.p99_ns),
                    format!("{} ns", figure.p999_ns),
                    format!("{:.1} ms", figure.worst_ns as f64 / 1e6),
                    format!("{:.0} %", figure.least_share * 100.0),
                    figure.worst_refusals.to_string(),
                ]
            })
            .collect();
        let header = [
            "directory",
            "nodes",
            "threads",
            "changes",
            "p50",
            "p99",
            "p99.9",
            "worst",
            "least share",
            "most refusals",
        ];
        format!("Threads on all nodes that change one word\n\n{}", table(&header, &rows))
    })
}
