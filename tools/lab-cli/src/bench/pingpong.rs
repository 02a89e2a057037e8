//! `rackmem-lab bench pingpong`: what three processes need to exchange the messages of a miss, and nothing else.

use rackmem::BlockSize;
use serde::Serialize;

use super::bare::Bare;
use super::rounds::table;
use super::samples::Rounds;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::size::Bytes;

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
struct PingpongReport {
    transport: TransportKind,
    bytes: Bytes,
    rounds: u64,
    exchanges: u64,
    median_ns: f64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
}

/// A block size, or why it is none.
pub(super) fn block_of(bytes: Bytes, flag: &str) -> Result<BlockSize, Fault> {
    BlockSize::new(bytes.0)
        .ok_or_else(|| Fault::usage(format_args!("{flag} {bytes} is not a power of two from 64 B to 1 MiB")))
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    if args.transport == TransportKind::Inline {
        return Err(Fault::usage(
            "--transport inline has no messages between processes: this takes --transport shm or --transport udp",
        ));
    }
    let block = block_of(args.bytes, "--bytes")?;
    let interrupt = Interrupt::listen()?;
    let mut bare = Bare::start(args.transport, block, &interrupt)?;
    let mut rounds = Rounds::new();
    for round in 0..=args.rounds {
        let samples = bare.exchange(args.exchanges)?;
        // The first round warms up.
        if round > 0 {
            rounds.add(&samples);
        }
    }
    drop(bare);
    let report = PingpongReport {
        transport: args.transport,
        bytes: args.bytes,
        rounds: args.rounds,
        exchanges: args.exchanges,
        median_ns: rounds.median(),
        p50_ns: rounds.all.quantile(0.5),
        p99_ns: rounds.all.quantile(0.99),
        p999_ns: rounds.all.quantile(0.999),
    };
    output::show(args.json, "bench pingpong", &report, || {
        let row = vec![
            report.transport.name().to_owned(),
            report.bytes.to_string(),
            micros(report.median_ns),
            micros(report.p50_ns as f64),
            micros(report.p99_ns as f64),
            micros(report.p999_ns as f64),
        ];
        format!(
            "Three processes: a request of 64 B, forwarded, answered with 64 B and a block\n\n{}",
            table(&["transport", "block", "median", "p50", "p99", "p99.9"], &[row])
        )
    })
}

/// A time, in microseconds.
pub(crate) fn micros(nanos: f64) -> String {
    format!("{:.2} µs", nanos / 1e3)
}
