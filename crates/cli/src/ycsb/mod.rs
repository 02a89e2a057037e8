//! `rackmem ycsb`: the YCSB core workloads on the key-value store, on an embedded rack or a rack of processes.
//!
//! Each node of the rack has its application threads, the clients, and each client its own handle of the rack and its
//! own stream of random numbers: in one process (`--transport inline`), or each node in a process of its own. Every
//! workload gets a fresh rack and loads it first, so that its numbers do not depend on what ran before.
//!
//! | file | concern |
//! | --- | --- |
//! | `args` | flags |
//! | `properties`, `core_file` | the property file format; YCSB's core properties |
//! | `workload` | what a workload is |
//! | `random`, `distribution`, `keys` | which record a request asks for, and its name |
//! | `store` | what is needed of a store; `engine`: which one it is; `rack`: the rack under it |
//! | `client`, `phase`, `measure` | one client; all of them at once; load, then run |
//! | `networked` | the same on a rack of processes |
//! | `latency`, `trips`, `history`, `progress`, `report` | what comes out |

mod args;
mod client;
mod core_file;
pub mod distribution;
pub mod engine;
mod history;
mod keys;
pub mod latency;
pub mod measure;
pub mod networked;
pub mod phase;
pub mod progress;
mod properties;
pub mod rack;
pub mod random;
mod report;
mod store;
pub(crate) mod trips;
pub mod workload;

pub use args::{Args, Directory, block_size};

use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::output;
use crate::processes::TransportKind;
use engine::Choice;
use history::History;
use measure::{Setting, measure};
use rack::{
    StoreRack, impossible, memory_for, memory_for_chains, memory_for_mapped, memory_for_objects, spec,
};
use report::{RackShape, YcsbReport};

/// What to try after the first run.
const NEXT: &str = "next: --transport shm does it on a rack of processes, rackmem up keeps one for your programs, --help has the rest\n";

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let (workloads, warnings) = args.workloads()?;
    for warning in warnings {
        say!("warning: {warning}");
    }
    let memory = workloads
        .iter()
        .map(|workload| match args.store {
            Choice::Chain => memory_for_chains(args, workload),
            Choice::Mapped => memory_for_mapped(workload),
            Choice::Objects => memory_for_objects(args, workload),
            _ => memory_for(args.nodes, args.block_size, workload),
        })
        .max()
        .unwrap_or_default();
    let start = |workload| StoreRack::start(args, memory, workload);
    let spec = spec(args, memory);
    spec.check().map_err(impossible)?;
    // The first rack comes first: it finds out what is wrong with the flags before anything is overwritten.
    let embedded = args.transport == TransportKind::Inline;
    let workloads = args.for_store(workloads)?;
    let mut ready = workloads.first().filter(|_| embedded).map(start).transpose()?;
    let history = args.history.as_deref().map(History::create).transpose().map_err(Fault::usage)?;
    let interrupt = Interrupt::listen()?;
    let shape = RackShape::new(args, memory);
    if !args.json {
        output::print(&format!("{}\n", shape.headline()))?;
    }
    let mut report = YcsbReport::new(shape);
    let mut failed = None;
    for (ordinal, workload) in (0..).zip(&workloads) {
        let engine = args.engine(workload);
        let setting = Setting {
            seed: args.seed,
            ordinal,
            history: history.as_ref(),
            warm_up: args.warm_up,
            interrupt: &interrupt,
        };
        let measured = if embedded {
            let rack = ready.take().map_or_else(|| start(workload), Ok)?;
            measure(workload, || rack.sessions(), &setting, || rack.traffic())
                .map_err(|error| Fault::failed(format_args!("workload {}: {}", workload.name, error.0)))
        } else {
            networked::measure(args.transport, &spec, (args.threads, engine), workload, &setting)
        };
        match measured {
            Ok(Some(measured)) => report.add(workload, engine, &measured),
            Ok(None) => {}
            Err(fault) => {
                failed = Some(fault);
                break;
            }
        }
        if interrupt.requested() {
            report.interrupted();
            break;
        }
    }
    if args.json {
        output::print_json(&report)?;
    } else if !report.is_empty() {
        output::print(&report.text())?;
        if embedded && failed.is_none() && !interrupt.requested() {
            output::print(NEXT)?;
        }
    }
    match failed {
        Some(fault) => Err(fault),
        None if interrupt.requested() => Err(Fault::Interrupted),
        None => report.lost().map_or(Ok(()), |lost| Err(Fault::failed(lost))),
    }
}
