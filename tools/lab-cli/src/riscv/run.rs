//! `rackmem-lab riscv run`: a program on every node of a machine, with timing or without.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use riscv::library::{COUNTED, Library};
use riscv::machine::{EngineConfig, Failure, Machine, MachineConfig, NodeStats, Schedule, Stats};
use riscv::timing::Chip;
use serde_json::{Value, json};

use super::trace::Onlooker;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::size::Bytes;

const EXAMPLES: &str = "\
Examples (in tools/riscv/programs/prebuilt):
  rackmem-lab riscv run hot_word.elf --nodes 64 --stats            64 nodes add to one word
  rackmem-lab riscv run circustent.elf -- sg add global            a pattern of CircusTent, with arguments
  rackmem-lab riscv run hot_word.elf --timing --stats              with the cycles that everything takes
  rackmem-lab riscv run circustent-software.elf --library openmpi-shm --timing --stats -- rand add global
                                                               each call charged with a library's instructions
  rackmem-lab riscv run hot_word.elf --nodes 2 --trace -- 3        every instruction, on standard error";

/// Which program, on what.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A 64-bit RISC-V ELF file, linked statically, for rv64ima and the remote atomics
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,

    /// Nodes, one core each
    #[arg(long, value_name = "N", default_value_t = 6)]
    nodes: usize,

    /// Memory of each node: stack, program and symmetric heap
    #[arg(long, value_name = "SIZE", default_value_t = Bytes(64 << 20))]
    memory: Bytes,

    /// Let this seed say who goes when and what arrives when, one instruction at a time; without it, cores take turns
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Let everything take the cycles that it takes on the paper's machine: 2 GHz, caches, DDR4, a mesh
    #[arg(long, conflicts_with = "seed")]
    timing: bool,

    /// Requests that wait together for one line in a miss-status register of an engine; with 1 nothing merges
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    subentries: u32,

    /// The library whose routines a program for the software path calls: openmpi-shm, openmpi-tcp, or a file of `rackmem-lab routines`
    #[arg(long = "library", value_name = "NAME")]
    routines: Option<String>,

    /// Stop after so many instructions, all nodes together
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Print what was counted
    #[arg(long)]
    stats: bool,

    /// Print one JSON document, with what was counted; consoles go to standard error
    #[arg(long)]
    json: bool,

    /// Print every instruction on standard error, with the registers that the one before it has changed
    #[arg(long)]
    trace: bool,

    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let program = super::load(&args.program)?;
    let name = args.program.display().to_string();
    let program = program.with_arguments([&[name], args.arguments.as_slice()].concat());
    let config = MachineConfig {
        memory: args.memory.0,
        schedule: match args.seed {
            Some(seed) => Schedule::Seeded(seed),
            None if args.timing => Schedule::Timed(Chip::PAPER),
            None => Schedule::Turns,
        },
        engine: EngineConfig { subentries: args.subentries, ..EngineConfig::PAPER },
        limit: args.limit,
        ..MachineConfig::nodes(args.nodes)
    };
    let mut machine = Machine::new(program, &config).map_err(Fault::usage)?;
    if let Some(name) = &args.routines {
        machine = machine.with_library(library(name)?);
    }
    let interrupt = Interrupt::listen()?;
    let mut onlooker = Onlooker::new((args.trace, args.json), interrupt, args.nodes);
    let begin = Instant::now();
    let ended = machine.run(&mut onlooker);
    let seconds = begin.elapsed().as_secs_f64();
    let stats = machine.stats();
    if args.json {
        output::print_json(&document(args, &stats, seconds, &ended))?;
    } else if args.stats {
        output::print(&table(&stats, seconds))?;
    }
    match ended {
        Err(Failure::Stopped) => Err(Fault::Interrupted),
        Ok(_) if onlooker.lost.is_some() => {
            Err(onlooker.lost.as_ref().map_or(Fault::OutputClosed, output::lost))
        }
        Ok(codes) => match codes.iter().position(|code| *code != 0) {
            None => Ok(()),
            Some(node) => Err(Fault::failed(format_args!(
                "node {node} has exited with {} ({} of {} nodes with another code than 0)",
                codes[node],
                codes.iter().filter(|code| **code != 0).count(),
                codes.len()
            ))),
        },
        Err(failure @ Failure::Trap(_)) => Err(Fault::failed(failure)),
        Err(failure) => Err(Fault::Stuck(failure.to_string())),
    }
}

/// One of the libraries that were counted, or a file.
fn library(name: &str) -> Result<Library, Fault> {
    if let Some(library) = Library::counted(name) {
        return Ok(library);
    }
    let known = COUNTED.map(|(name, _)| name).join(", ");
    let text = fs::read_to_string(name).map_err(|error| {
        Fault::usage(format_args!("{name} is no library ({known}), and no file: {error}"))
    })?;
    Library::parse(name, &text).map_err(|error| Fault::usage(format_args!("{name}: {error}")))
}

/// What was counted, by what it is called.
fn counted(stats: &NodeStats) -> [(&'static str, u64); 18] {
    let engine = &stats.engine;
    [
        ("instructions", stats.instructions),
        ("cycles", stats.cycles),
        ("cycles_waited_for_answers", stats.waited),
        ("accesses_through_caches", stats.caches.all),
        ("first_level_misses", stats.caches.first_missed),
        ("second_level_misses", stats.caches.second_missed),
        ("local_atomics", stats.local_atomics),
        ("remote_loads", stats.remote_loads),
        ("remote_stores", stats.remote_stores),
        ("remote_atomics", stats.remote_atomics),
        ("requests_to_itself", stats.to_itself),
        ("library_calls", stats.routines),
        ("library_instructions", stats.charged),
        ("engine_requests", engine.taken),
        ("engine_merged", engine.merged),
        ("engine_full", engine.full),
        ("engine_lines_fetched", engine.fetched),
        ("engine_lines_written", engine.written),
    ]
}

fn table(stats: &Stats, seconds: f64) -> String {
    let total = stats.total();
    let mut text = String::new();
    for (name, value) in counted(&total) {
        let _ = writeln!(text, "{:26}{value:>16}", name.replace('_', " "));
    }
    let _ = writeln!(
        text,
        "{:26}{:>16.1}",
        "M instructions/s (host)",
        total.instructions as f64 / seconds.max(1e-9) / 1e6
    );
    text
}

fn document(args: &Args, stats: &Stats, seconds: f64, ended: &Result<Vec<i32>, Failure>) -> Value {
    let object = |stats: &NodeStats| -> Value {
        counted(stats).into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
    };
    json!({
        "command": "riscv run",
        "version": env!("CARGO_PKG_VERSION"),
        "program": args.program.display().to_string(),
        "arguments": args.arguments,
        "timing": args.timing,
        "subentries": args.subentries,
        "library": args.routines,
        "nodes": args.nodes,
        "memory_bytes": args.memory,
        "seed": args.seed,
        "exit_codes": ended.as_ref().ok(),
        "failure": ended.as_ref().err().map(ToString::to_string),
        "rounds": stats.rounds,
        "host_seconds": seconds,
        "total": object(&stats.total()),
        "by_node": stats.nodes.iter().map(object).collect::<Vec<_>>(),
    })
}
