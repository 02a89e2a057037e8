//! The `rackmem-lab` command: what shows that rackmem is right, and how fast it is.
//!
//! Each subcommand is a module that turns flags into calls of `check`, `lab` or the public API, and what comes back
//! into a table for people or, with `--json`, into one document for programs. Streams and exit codes are those of the
//! `rackmem` command, whose library this one uses.

#![warn(clippy::print_stderr)]

mod bench;
mod callgrind;
mod check;
mod command;
mod dissector;
mod explain;
mod figure;
mod fuzz;
mod graph;
mod peers;
mod record;
mod riscv;
mod soak;
mod tpcc;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::command::main::<command::RackmemLab>()
}
