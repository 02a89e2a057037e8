//! `rackmem-lab peers --words --instructions`: how many instructions a requester executes for an operation on another process's
//! word, counted by callgrind.
//!
//! Two processes; the one that operates runs under valgrind, the one that has the words does not. What is counted is all that one
//! thread does inside `counted_operations`, which every program has: operations on one word, one after the other, the loop around
//! them, and the flush at their end. Instructions of the kernel are not among them. Over a network a requester that waits for an
//! answer executes instructions meanwhile, and how many is up to how long that takes: there it is what was seen, not what
//! repeats exactly.
//!
//! What must always hold: every program did as many operations.

use serde::Serialize;

use super::program::{Library, Program};
use super::report::{System, said_missing};
use super::{IN_FLIGHT, question};
use crate::bench::rounds::table;
use crate::bench::word::{Operation, count, counted_name};
use crate::callgrind::Callgrind;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::rendezvous::RuntimeDir;
use cli::say;

/// A fetch-add on words within reach may take so many.
const MOST_NEAR: f64 = 20.0;
/// Of which one is operated on.
const WORDS: u64 = 1024;
/// OpenSHMEM of Open MPI 4.1 crashes while it starts, every other time or so, if only one of its processes runs under valgrind.
pub(super) const TRIES: usize = 8;
/// What the peers' programs call the function that is counted.
const COUNTED: &str = "counted_operations";

/// Instructions of the requester for one operation.
#[derive(Clone, Copy, Debug, Serialize)]
struct Count {
    system: System,
    transport: TransportKind,
    operation: Operation,
    instructions: f64,
}

#[derive(Serialize)]
struct InstructionsReport {
    /// What was compared with, and what counted.
    versions: Vec<String>,
    operations: u64,
    counts: Vec<Count>,
    most_near: f64,
    met: Option<bool>,
}

/// Runs the command.
pub(super) fn run(json: bool, interrupt: &Interrupt) -> Result<(), Fault> {
    let folder = RuntimeDir::new()?;
    let callgrind = Callgrind::new(folder.path())?;
    let mut programs = Vec::new();
    for library in Library::ALL {
        match Program::compile(library, folder.path())? {
            Some(program) => programs.push(program),
            None => said_missing(library),
        }
    }
    let mut counts = Vec::new();
    for transport in [TransportKind::Shm, TransportKind::Udp] {
        for operation in [Operation::FetchAdd, Operation::Add] {
            let mut add = |system: System, total: u64| {
                let instructions = total as f64 / IN_FLIGHT as f64;
                say!("{} over {}: {} {instructions:.1}", system.name(), transport.name(), operation.name());
                counts.push(Count { system, transport, operation, instructions });
            };
            for program in &programs {
                let mut tries = (0..TRIES).map(|_| {
                    callgrind.around(COUNTED, |under| {
                        program.run_under(transport, WORDS, (operation, IN_FLIGHT), under, interrupt)
                    })
                });
                let is_last = |counted: &Result<u64, Fault>| counted.is_ok() || interrupt.requested();
                let counted = tries.find(is_last).unwrap_or_else(|| {
                    let name = program.peer().name();
                    Err(Fault::failed(format_args!("{name} failed {TRIES} times, and has said why")))
                })?;
                add(System::Peer(program.peer()), counted);
            }
            let counted = callgrind.around(&counted_name(), |under| {
                count(&question(transport, 2, 1), operation, IN_FLIGHT, under, interrupt)
            })?;
            add(System::Rack, counted);
        }
    }
    let mut versions: Vec<String> = programs.iter().map(Program::version).collect();
    versions.push(callgrind.version());
    let near = find(&counts, System::Rack, TransportKind::Shm, Operation::FetchAdd);
    let report = InstructionsReport {
        versions,
        operations: IN_FLIGHT,
        met: near.map(|near| near <= MOST_NEAR),
        most_near: MOST_NEAR,
        counts,
    };
    output::show(json, "peers --words --instructions", &report, || report.text())
}

fn find(counts: &[Count], system: System, transport: TransportKind, operation: Operation) -> Option<f64> {
    let is_it = |of: &&Count| (of.system, of.transport, of.operation) == (system, transport, operation);
    counts.iter().find(is_it).map(|of| of.instructions)
}

impl InstructionsReport {
    fn text(&self) -> String {
        let mut rows = Vec::new();
        for transport in [TransportKind::Shm, TransportKind::Udp] {
            for operation in [Operation::FetchAdd, Operation::Add] {
                let of = |system| {
                    find(&self.counts, system, transport, operation)
                        .map_or_else(String::new, |count| format!("{count:.1}"))
                };
                let path = if transport == TransportKind::Shm { "shared memory" } else { "TCP, UDP" };
                let mut row = vec![path.to_owned(), operation.name().to_owned()];
                row.extend(Library::ALL.map(|library| of(System::Peer(library))));
                row.push(of(System::Rack));
                rows.push(row);
            }
        }
        let mut header = vec!["", "operation"];
        header.extend(Library::ALL.map(Library::name));
        header.push("rackmem");
        let verdict = match self.met {
            Some(true) => "met",
            Some(false) => "not met",
            None => "nothing was counted",
        };
        format!(
            "Instructions of the requester for an operation on a word of another process, {} of them one after the other\n{}\n\n{}\n\
             shm: fetch_add: at most {} instructions: {verdict}\n",
            self.operations,
            self.versions.join("; "),
            table(&header, &rows),
            self.most_near,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_beside_each_other_and_a_target_that_is_missed_is_named() {
        let of = |system, instructions| Count {
            system,
            transport: TransportKind::Shm,
            operation: Operation::FetchAdd,
            instructions,
        };
        let counts = vec![of(System::Peer(Library::Mpi), 304.0), of(System::Rack, 21.5)];
        let report = InstructionsReport {
            versions: vec!["MPI: 4".to_owned(), "valgrind-3".to_owned()],
            operations: 10,
            met: Some(false),
            most_near: MOST_NEAR,
            counts,
        };
        let text = report.text();
        let row = text.lines().find(|line| line.contains("304.0")).expect("a row");
        assert!(row.contains("21.5") && text.contains("MPI: 4; valgrind-3"), "{text}");
        assert!(text.contains("at most 20 instructions: not met"), "{text}");
    }
}
