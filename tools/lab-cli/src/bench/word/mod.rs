//! `rackmem-lab bench word`: operations on words of another node.
//!
//! Node 0 has the words, and every other node has a thread that operates on them, all at once: one word at a time, waited for, or many
//! in flight. Words are chosen at random, or all take the same one.
//!
//! | words | yardstick, in the same run |
//! | --- | --- |
//! | within reach of loads and stores (`inline`, `shm`) | a bare `AtomicU64` of the thread's own process, chosen alike |
//! | at another machine, as far as messages go (`udp`) | the bare exchange of two messages over the same transport |
//!
//! | file | holds |
//! | --- | --- |
//! | `node` | what a node's thread does with words, and with the yardstick |
//! | `measure` | rounds, in which all take turns |
//! | `report` | what comes out |
//!
//! What must always hold: in the end the words add up to what was added.

mod measure;
mod node;
mod report;

pub(crate) use measure::{Question, busy, count, measure};
pub(crate) use node::{Operating, Operation, counted_name};
pub(crate) use report::BUSY_P50;

use self::report::WordBenchReport;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Nodes: one has the words, all others operate on them at once
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(2..=64))]
    nodes: u16,

    /// What is between the nodes
    #[arg(long, value_enum, default_value = "inline")]
    transport: TransportKind,

    /// Words to choose from
    #[arg(long, default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    words: u64,

    /// All on one word only, instead of both that and words chosen at random
    #[arg(long)]
    hot: bool,

    /// Operations that a thread has in flight where it does not wait for each
    #[arg(long, default_value_t = 8192, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    in_flight: u64,

    /// Instead: a blocking fetch-add while the process of the words' home computes on every core
    #[arg(long, conflicts_with = "hot")]
    busy: bool,

    /// Milliseconds of each measurement in a round
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    millis: u64,

    /// Rounds; the medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    if args.busy && args.transport == TransportKind::Inline {
        return Err(Fault::usage(
            "--transport inline has no other process that could compute: --busy takes --transport shm or --transport udp",
        ));
    }
    let interrupt = Interrupt::listen()?;
    let question = Question {
        transport: args.transport,
        nodes: args.nodes,
        words: args.words,
        in_flight: args.in_flight,
        millis: args.millis,
        rounds: args.rounds,
        patterns: if args.hot { &[true] } else { &[false, true] },
        operations: &Operation::ALL,
        yardstick: true,
    };
    let mut report = WordBenchReport::new(&question);
    if args.busy {
        report.busy = Some(busy(&question, &interrupt)?);
    } else {
        report.set(measure(&question, &interrupt)?);
    }
    output::show(args.json, "bench word", &report, || report.text())
}
