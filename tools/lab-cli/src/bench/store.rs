//! `rackmem-lab bench store`: YCSB C on one node, with a store in mapped memory against one that is reached by calls.
//!
//! Runs take turns, each on a fresh rack of processes over shared memory, with what `rackmem ycsb` has by default.

use serde::Serialize;

use super::rounds::{median, table};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::ycsb::engine::Engine;
use cli::ycsb::measure::Setting;
use cli::ycsb::networked;
use cli::ycsb::rack::{memory_for, memory_for_mapped};
use cli::ycsb::workload::Workload;

/// The mapped store does so many times as much.
const LEAST: f64 = 1.5;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Operations of a round, of each store; a tenth as many come before, to warm the caches
    #[arg(long, default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(10..))]
    operations: u64,

    /// Rounds; the medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct StoreReport {
    rounds: u64,
    coherent_per_s: f64,
    mapped_per_s: f64,
    /// The median of the rounds' ratios.
    ratio: f64,
    least_ratio: f64,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    let interrupt = &Interrupt::listen()?;
    let letter = Workload::letter('C').expect("one of YCSB's");
    let workload = Workload { operations: args.operations, ..letter };
    let block = rackmem::BlockSize::DEFAULT;
    let memory = memory_for(1, block, &workload).max(memory_for_mapped(&workload)).0;
    let spec =
        RackSpec { nodes: 1, cache: rackmem::Config::default().cache, memory, ..super::nodes::spec(block) };
    let per_s = |engine, ordinal| {
        let setting = Setting { seed: 42, ordinal, history: None, warm_up: args.operations / 10, interrupt };
        let measured = networked::measure(TransportKind::Shm, &spec, (1, engine), &workload, &setting)?;
        let measured = measured.filter(|_| !interrupt.requested()).ok_or(Fault::Interrupted)?;
        Ok::<_, Fault>(args.operations as f64 / measured.took.as_secs_f64())
    };
    let round = |round| Ok((per_s(Engine::Coherent, round)?, per_s(Engine::Mapped, round)?));
    let pairs = (0..args.rounds).map(round).collect::<Result<Vec<_>, Fault>>()?;
    let all = |of: fn(&(f64, f64)) -> f64| median(pairs.iter().map(of).collect());
    let (coherent_per_s, mapped_per_s, ratio) =
        (all(|pair| pair.0), all(|pair| pair.1), all(|pair| pair.1 / pair.0));
    let report = StoreReport { rounds: args.rounds, coherent_per_s, mapped_per_s, ratio, least_ratio: LEAST };
    output::show(args.json, "bench store", &report, || {
        let row = |store: &str, per_s: f64| vec![store.to_owned(), format!("{:.2} M", per_s / 1e6)];
        let verdict = if ratio >= LEAST { "met" } else { "missed" };
        format!(
            "YCSB C on one node: {} records of {} B (medians of {} rounds)\n\n{}\n\
             Target: at least {LEAST}x; it is {ratio:.2}x: {verdict}\n",
            workload.records,
            workload.record_len(),
            args.rounds,
            table(&["store", "reads/s"], &[row("coherent", coherent_per_s), row("mapped", mapped_per_s)])
        )
    })
}
