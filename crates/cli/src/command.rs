//! What can be typed: the subcommands, and the help that explains them; how a command starts and ends.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::daemon::snapshots::{restore, save};
use crate::daemon::{drain, names, node, status, switch, up, write};
use crate::fault::Fault;
use crate::processes::{Job, child};
use crate::{daemon, output, pipeline, ycsb};

const EXAMPLES: &str = "\
Examples:
  rackmem ycsb                                   YCSB A, B and C on an embedded rack of 8 nodes
  rackmem ycsb --workload C --nodes 2 --json     one workload, two nodes, a result for programs
  rackmem ycsb --workload ./workloada            a property file of YCSB, as it is
  rackmem ycsb --transport shm                   the same on a rack of processes
  rackmem up                                     a rack of processes on this machine, until Ctrl-C
  rackmem status                                 how that rack is
  rackmem names                                  what has a name there
  rackmem snapshot users users.snap              saves what a name names into a file; rackmem restore brings it back
  rackmem drain --node 2                         has a node leave it, and others keep what it has with copies
  rackmem pipeline                               what FlowCC takes of a switch chip, stage by stage

Benchmarks, checkers, figures and peers are a command of their own: `cargo lab` in a clone.";

/// A command line: what it is made of, and what is done then.
pub trait CommandLine: Parser {
    /// Does it.
    fn run(self) -> Result<(), Fault>;
}

/// All that a command is: reads its line, does what it says, and tells how that ended.
pub fn main<L: CommandLine>() -> ExitCode {
    let done = match L::try_parse() {
        Ok(line) => line.run(),
        Err(error) => {
            // Help and version arrive here too; clap knows which stream and which exit code is theirs. If it is standard
            // error that is gone, there is nobody left to tell.
            return match error.print() {
                Err(lost) if !error.use_stderr() => output::lost(&lost).report(),
                _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
            };
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fault.report(),
    }
}

/// One shared memory for a rack of machines, kept coherent in the network: run a rack, and see how it is.
#[derive(Debug, Parser)]
#[command(name = "rackmem", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Rackmem {
    #[command(subcommand)]
    command: Command,
}

/// The subcommands, one module each.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run YCSB workloads on a key-value store in the memory of a rack
    Ycsb(ycsb::Args),
    /// Be one process of many: what other commands start
    #[command(hide = true)]
    Place,
    /// Run a rack as processes on this machine: the switch and nodes, until Ctrl-C
    Up(up::Args),
    /// Be the switch of a rack of processes
    Switch(switch::Args),
    /// Be a node of a rack of processes that has no application
    Node(node::Args),
    /// Print how a rack of processes is: who is up, what is cached where, what was dropped and why
    Status(status::Args),
    /// List what has a name in a rack of processes: its kind, type, size, home and maker
    Names(names::Args),
    /// Save what a name of a rack of processes names into a file
    Snapshot(save::Args),
    /// Bring back what rackmem snapshot has saved
    Restore(restore::Args),
    /// Have a node leave a rack of processes, when others have what it keeps of memory with copies
    Drain(drain::Args),
    /// Write a commented rack file to standard output
    RackFile(write::RackFileArgs),
    /// Write a new key for a rack into a file that only you can read
    Key(write::KeyArgs),
    /// Print the stage map of the switch program: arrays, tables and memory against the chip's budget
    Pipeline(pipeline::Args),
}

impl CommandLine for Rackmem {
    fn run(self) -> Result<(), Fault> {
        match self.command {
            Command::Ycsb(args) => ycsb::run(&args),
            Command::Place => child::run(vec![Job::of(ycsb::networked::place)]),
            Command::Up(args) => daemon::up::run(&args),
            Command::Switch(args) => daemon::switch::run(&args),
            Command::Node(args) => daemon::node::run(&args),
            Command::Status(args) => daemon::status::run(&args),
            Command::Names(args) => daemon::names::run(&args),
            Command::Snapshot(args) => daemon::snapshots::save::run(&args),
            Command::Restore(args) => daemon::snapshots::restore::run(&args),
            Command::Drain(args) => daemon::drain::run(&args),
            Command::RackFile(args) => daemon::write::rack_file(&args),
            Command::Key(args) => daemon::write::key(&args),
            Command::Pipeline(args) => pipeline::run(&args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_of_all_subcommands_fit_together() {
        Rackmem::command().debug_assert();
    }
}
