//! The `rackmem` command: real workloads on a rack, from a shell.
//!
//! Nothing of the protocol is here. Each subcommand is a module that turns flags into calls of the public API,
//! and what comes back into a table for people or, with `--json`, into one document for programs. Results go to
//! standard output, everything else (progress, warnings, mistakes) to standard error.
//!
//! Exit codes: 0 done; 1 the run failed; 2 the command line, or a file that it names, is wrong; 3 the run was stuck;
//! 4 a machine of the protocol panicked; 130 stopped by Ctrl-C after printing what there was. A daemon that is asked to
//! end has done what it was for: 0.

#![warn(clippy::print_stderr)]

#[macro_use]
mod say;

mod bench;
mod check;
mod clock;
mod command;
mod daemon;
mod explain;
mod fault;
mod fuzz;
mod interrupt;
mod lab;
mod objects;
mod output;
mod pipeline;
mod processes;
mod riscv;
mod size;
mod soak;
mod ycsb;

use std::process::ExitCode;

use clap::Parser;

use crate::command::{Command, CommandLine};

fn main() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => {
            // Help and version arrive here too; clap knows which stream and which exit code is theirs. If it is standard
            // error that is gone, there is nobody left to tell.
            return match error.print() {
                Err(lost) if !error.use_stderr() => output::lost(&lost).report(),
                _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
            };
        }
    };
    let done = match line.command {
        Command::Ycsb(args) => ycsb::run(&args),
        Command::Bench(bench) => bench::run(&bench),
        Command::Check(check) => check::run(&check),
        Command::Explain(args) => explain::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Objects(args) => objects::run(&args),
        Command::Pipeline(args) => pipeline::run(&args),
        Command::Riscv(args) => riscv::run(&args),
        Command::Up(args) => daemon::up::run(&args),
        Command::Switch(args) => daemon::switch::run(&args),
        Command::Node(args) => daemon::node::run(&args),
        Command::Status(args) => daemon::status::run(&args),
        Command::RackFile(args) => daemon::write::rack_file(&args),
        Command::Key(args) => daemon::write::key(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Place => processes::child::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fault.report(),
    }
}
