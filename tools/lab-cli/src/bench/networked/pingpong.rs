//! `rackmem-lab bench pingpong`: what three processes need to exchange the messages of a miss, and nothing else.

use rackmem::BlockSize;
use serde::Serialize;

use super::Role;
use super::crews::Three;
use super::samples::Recorder;
use crate::bench::rounds::{median, table};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;
use cli::ycsb::Directory;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What carries the messages: shm or udp
    #[arg(long, value_enum)]
    transport: TransportKind,

    /// Bytes that the third process sends back
    #[arg(long, default_value = "4KiB")]
    bytes: Bytes,

    /// Rounds; the medians are printed
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(3..=10_000))]
    rounds: u64,

    /// Exchanges in a round
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    exchanges: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    command: &'static str,
    version: &'static str,
    transport: TransportKind,
    bytes: Bytes,
    rounds: u64,
    exchanges: u64,
    median_ns: f64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
}

/// Three processes, with blocks of this size.
pub(in crate::bench) fn spec(block: BlockSize) -> RackSpec {
    RackSpec {
        nodes: 2,
        block_bytes: block.bytes(),
        cache: 1024 * block.bytes(),
        memory: (32768 * block.bytes()).max(64 << 20),
        switch_entries: 65_536,
        directory: Directory::Switch,
        queue: false,
        peek: false,
        lock_copies: RackSpec::LOCK_COPIES,
        lock_region: RackSpec::LOCK_REGION,
        steering: None,
        seed: 1,
    }
}

/// Refuses what has no processes.
pub(super) fn processes_of(transport: TransportKind) -> Result<(), Fault> {
    if transport == TransportKind::Inline {
        return Err(Fault::usage(
            "--transport inline has no messages between processes: this takes --transport shm or --transport udp",
        ));
    }
    Ok(())
}

/// A block size, or why it is none.
pub(super) fn block_of(bytes: Bytes, flag: &str) -> Result<BlockSize, Fault> {
    BlockSize::new(bytes.0)
        .ok_or_else(|| Fault::usage(format_args!("{flag} {bytes} is not a power of two from 64 B to 1 MiB")))
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    processes_of(args.transport)?;
    let block = block_of(args.bytes, "--bytes")?;
    let interrupt = Interrupt::listen()
        .map_err(|error| Fault::failed(format_args!("cannot listen for Ctrl-C: {error}")))?;
    let mut three = Three::start(args.transport, Role::Bare, &spec(block), &interrupt)?;
    let (mut all, mut means) = (Recorder::new(), Vec::new());
    for round in 0..=args.rounds {
        let samples = three.exchange(args.exchanges)?;
        // The first round warms up.
        if round > 0 {
            all.add(&samples);
            means.push(samples.mean());
        }
    }
    drop(three);
    let report = Report {
        command: "bench pingpong",
        version: env!("CARGO_PKG_VERSION"),
        transport: args.transport,
        bytes: args.bytes,
        rounds: args.rounds,
        exchanges: args.exchanges,
        median_ns: median(means),
        p50_ns: all.quantile(0.5),
        p99_ns: all.quantile(0.99),
        p999_ns: all.quantile(0.999),
    };
    if args.json {
        return output::print_json(&report);
    }
    let row = vec![
        report.transport.name().to_owned(),
        report.bytes.to_string(),
        micros(report.median_ns),
        micros(report.p50_ns as f64),
        micros(report.p99_ns as f64),
        micros(report.p999_ns as f64),
    ];
    output::print(&format!(
        "Three processes: a request of 64 B, forwarded, answered with 64 B and a block\n\n{}",
        table(&["transport", "block", "median", "p50", "p99", "p99.9"], &[row])
    ))
}

/// A time, in microseconds.
pub(crate) fn micros(nanos: f64) -> String {
    format!("{:.2} µs", nanos / 1e3)
}
