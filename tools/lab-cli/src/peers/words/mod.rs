//! `rackmem-lab peers --words`: operations on words of another process with OpenSHMEM and with the one-sided operations of MPI, and
//! with `Words` on a rack, all in one run, taking turns.
//!
//! | paths | peers | rack |
//! | --- | --- | --- |
//! | shared memory | UCX `posix`; Open MPI's own windows in shared memory | shm: loads and stores |
//! | network | UCX over TCP; Open MPI's active messages over TCP | udp: batches on queue pairs |
//!
//! Process 0 has the words; each of the others operates on them. While it has nothing to do, process 0 of a peer is inside its
//! library; or it computes, and calls the library every 20 ms.
//!
//! | file | what |
//! | --- | --- |
//! | `program.rs` | the peers' programs (`tools/lab-cli/peers`), compiled and run |
//! | `report.rs` | table, JSON, targets |
//! | `routines.rs` | `rackmem-lab routines`: the same of all routines that programs of `tools/riscv` call |
//! | `instructions.rs` | `--instructions`: what an operation takes of its requester's instructions, instead of times |
//!
//! What must always hold: peers and racks have as many words, in flight and requesters; whatever was started has ended.

mod instructions;
mod program;
mod report;
pub(crate) mod routines;

use self::program::{Library, Program, Setting};
use self::report::{Measured, System, WordsReport};
use super::args::Args;
use crate::bench::rounds::median;
use crate::bench::word::{Operation, Question, busy, measure};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::rendezvous::RuntimeDir;
use cli::say;

/// Words to choose from: 8 MiB of them, more than a core's own caches hold.
const WORDS: u64 = 1 << 20;
/// Operations in flight, where each is not waited for.
const IN_FLIGHT: u64 = 8192;
/// Of a target that computes, so that there are enough of its slices.
const BUSY_TIMES: u64 = 10;
/// Operations that racks are measured with; peers have names of their own for them.
const OPERATIONS: [Operation; 3] = [Operation::FetchAdd, Operation::Post, Operation::Add];

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    let interrupt = Interrupt::listen()?;
    if args.instructions {
        return instructions::run(args.json, &interrupt);
    }
    let folder = RuntimeDir::new()?;
    let mut programs = Vec::new();
    let mut report = WordsReport::new(args.processes.clone(), WORDS, IN_FLIGHT, args.millis, args.rounds);
    for library in Library::ALL {
        match Program::compile(library, folder.path())? {
            Some(program) => programs.push(program),
            None => report.missing(library),
        }
    }
    for &processes in &args.processes {
        for kind in [TransportKind::Shm, TransportKind::Udp] {
            let mut all: Vec<Measured> = Vec::new();
            for _ in 0..args.rounds {
                for program in &programs {
                    let setting = Setting { kind, processes, millis: args.millis, busy: false };
                    all.extend(program.run(&setting, &interrupt)?);
                }
                all.extend(on_rack(kind, processes, args.millis, &interrupt)?);
            }
            for of in medians(all) {
                say!("{processes} processes over {}: {}", kind.name(), of.said());
                report.add(kind, processes, of);
            }
        }
    }
    let setting = |kind| Setting { kind, processes: 2, millis: args.millis * BUSY_TIMES, busy: true };
    for program in &programs {
        let measured = program.run(&setting(TransportKind::Udp), &interrupt)?;
        measured.into_iter().for_each(|of| report.add(TransportKind::Udp, 2, of));
    }
    let question = Question { rounds: 1, ..question(TransportKind::Udp, 2, args.millis * BUSY_TIMES) };
    let computing = busy(&question, &interrupt)?;
    report.add(
        TransportKind::Udp,
        2,
        Measured {
            system: System::Rack,
            operation: Operation::FetchAdd,
            hot: false,
            busy: true,
            per_second: computing.per_second,
            p50_ns: Some(computing.p50_ns),
            p99_ns: Some(computing.p99_ns),
        },
    );
    report.judge();
    output::show(args.json, "peers --words", &report, || report.text())
}

fn question(kind: TransportKind, processes: u16, millis: u64) -> Question<'static> {
    Question {
        transport: kind,
        nodes: processes,
        words: WORDS,
        in_flight: IN_FLIGHT,
        millis,
        rounds: 1,
        patterns: &[false, true],
        operations: &OPERATIONS,
        yardstick: false,
    }
}

fn on_rack(
    kind: TransportKind,
    processes: u16,
    millis: u64,
    interrupt: &Interrupt,
) -> Result<Vec<Measured>, Fault> {
    let figures = measure(&question(kind, processes, millis), interrupt)?;
    Ok(figures
        .into_iter()
        .map(|figure| Measured {
            system: System::Rack,
            operation: figure.operation,
            hot: figure.hot,
            busy: false,
            per_second: figure.per_second,
            p50_ns: figure.p50_ns,
            p99_ns: figure.p99_ns,
        })
        .collect())
}

/// One of each kind, out of several rounds.
fn medians(mut all: Vec<Measured>) -> Vec<Measured> {
    let mut done = Vec::new();
    while let Some(first) = all.first().cloned() {
        let (same, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|of| of.is_alike(&first));
        let middle = |of: &dyn Fn(&Measured) -> Option<f64>| {
            let all: Vec<f64> = same.iter().filter_map(of).collect();
            if all.is_empty() { None } else { Some(median(all)) }
        };
        let nanos = |nanos: f64| nanos as u64;
        done.push(Measured {
            per_second: middle(&|of| Some(of.per_second)).unwrap_or(0.0),
            p50_ns: middle(&|of| of.p50_ns.map(|it| it as f64)).map(nanos),
            p99_ns: middle(&|of| of.p99_ns.map(|it| it as f64)).map(nanos),
            ..first
        });
        all = rest;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_come_to_one_figure_of_each_kind_which_is_their_median() {
        let of = |hot, per_second, p50_ns| Measured {
            system: System::Rack,
            operation: Operation::Add,
            hot,
            busy: false,
            per_second,
            p50_ns,
            p99_ns: None,
        };
        let all = vec![
            of(false, 3.0, Some(30)),
            of(true, 9.0, None),
            of(false, 1.0, Some(10)),
            of(false, 2.0, Some(20)),
        ];
        let done = medians(all);
        assert_eq!(done.len(), 2);
        assert_eq!((done[0].hot, done[0].per_second, done[0].p50_ns), (false, 2.0, Some(20)));
        assert_eq!((done[1].hot, done[1].per_second, done[1].p50_ns), (true, 9.0, None));
    }
}
