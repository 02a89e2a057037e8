//! What can be typed: the subcommands, and the help that explains them.

use clap::{Parser, Subcommand};

use crate::daemon::{node, status, switch, up, write};
use crate::{bench, check, explain, fuzz, lab, objects, pipeline, riscv, soak, ycsb};

const EXAMPLES: &str = "\
Examples:
  rackmem ycsb                                   YCSB A, B and C on an embedded rack of 8 nodes
  rackmem ycsb --workload C --nodes 2 --json     one workload, two nodes, a result for programs
  rackmem ycsb --workload ./workloada            a property file of YCSB, as it is
  rackmem bench hit                              cached accesses against a plain array
  rackmem bench miss --transport shm             misses between processes against the bare exchange
  rackmem bench object --transport shm           reads of whole objects against four other ways
  rackmem objects                                a read-mostly store of objects in two layouts
  rackmem lab peers                              YCSB on Redis, memcached and racks of processes
  rackmem check flowcc                           every state of small racks, with faults
  rackmem fuzz --seeds 0..1000                   a thousand runs with lost packets, restarts and deaths
  rackmem explain read-miss                      what passes between the places, with times
  rackmem pipeline                               what FlowCC takes of a switch chip, stage by stage
  rackmem riscv run hot_word.elf --nodes 64      a program whose remote atomics are instructions, on 64 nodes
  rackmem up                                     a rack of processes on this machine, until Ctrl-C
  rackmem status                                 how that rack is";

/// One shared memory for a rack of machines, kept coherent in the network: run a rack, measure it, check it.
#[derive(Debug, Parser)]
#[command(name = "rackmem", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands, one module each.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run YCSB workloads on a key-value store in the memory of a rack
    Ycsb(ycsb::Args),
    /// Measure what accesses cost, beside a yardstick of the same run
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Decide properties of the protocol by looking at every state of small racks
    #[command(subcommand)]
    Check(check::Check),
    /// Show what passes between the places of a rack in a scenario: who sends what to whom, and when
    Explain(explain::Args),
    /// Run the protocol under faults and restarts, one random run a seed, and check it after every step
    Fuzz(fuzz::Args),
    /// Run the experiments of the papers on a simulated rack, and put their numbers beside ours
    Lab(lab::Args),
    /// Run lookups and updates on a read-mostly store of objects, with one layout of objects and another
    Objects(objects::Args),
    /// Kill and stop the processes of a rack again and again, and judge every answer that it gave
    Soak(soak::Args),
    /// Be one process of many: what other commands start
    #[command(hide = true)]
    Place,
    /// Print the stage map of the switch program: arrays, tables and memory against the chip's budget
    Pipeline(pipeline::Args),
    /// Run programs for RISC-V cores that have remote atomics as instructions
    #[command(subcommand)]
    Riscv(riscv::Riscv),
    /// Run a rack as processes on this machine: the switch and nodes, until Ctrl-C
    Up(up::Args),
    /// Be the switch of a rack of processes
    Switch(switch::Args),
    /// Be a node of a rack of processes that has no application
    Node(node::Args),
    /// Print how a rack of processes is: who is up, what is cached where, what was dropped and why
    Status(status::Args),
    /// Write a commented rack file to standard output
    RackFile(write::RackFileArgs),
    /// Write a new key for a rack into a file that only you can read
    Key(write::KeyArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_of_all_subcommands_fit_together() {
        CommandLine::command().debug_assert();
    }
}
