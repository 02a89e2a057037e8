//! `rackmem-lab riscv`: programs for RISC-V with remote atomics, on a machine of many nodes.

use std::fs;
use std::path::Path;

use clap::Subcommand;
use riscv::program::Program;

use cli::fault::Fault;

mod disasm;
mod run;
mod trace;

/// What to do with a program.
#[derive(Debug, Subcommand)]
pub(crate) enum Riscv {
    /// Run a program on every node of a machine
    Run(run::Args),
    /// Print the instructions of a program
    Disasm(disasm::Args),
}

/// Runs the command.
pub(crate) fn run(riscv: &Riscv) -> Result<(), Fault> {
    match riscv {
        Riscv::Run(args) => run::run(args),
        Riscv::Disasm(args) => disasm::run(args),
    }
}

/// Reads a program.
fn load(path: &Path) -> Result<Program, Fault> {
    let bytes = fs::read(path)
        .map_err(|error| Fault::usage(format_args!("cannot read {}: {error}", path.display())))?;
    Program::from_elf(&bytes).map_err(|error| {
        Fault::usage(format_args!(
            "{}: {error}\n  tools/riscv/programs has programs, and how they are built",
            path.display()
        ))
    })
}
