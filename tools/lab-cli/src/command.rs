//! What can be typed: the subcommands, and the help that explains them.

use clap::{Parser, Subcommand};
use cli::command::CommandLine;
use cli::fault::Fault;
use cli::processes::{Job, child};
use cli::ycsb;

use crate::peers::routines;
use crate::{bench, check, dissector, explain, figure, fuzz, graph, peers, record, riscv, soak, tpcc};

const EXAMPLES: &str = "\
Examples:
  rackmem-lab bench hit                          cached accesses against a plain array
  rackmem-lab bench miss --transport shm         misses between processes against the bare exchange
  rackmem-lab bench object --transport shm       reads of whole objects against four other ways
  rackmem-lab graph --nodes 4 --kernel bfs       breadth-first search on a generated graph, verified
  rackmem-lab peers                              YCSB on Redis, memcached and racks of processes
  rackmem-lab figure concordia                   Concordia's figures on a simulated rack, beside the paper's
  rackmem-lab check coherence                       every state of small racks, with faults
  rackmem-lab fuzz --seeds 0..1000               a thousand runs with lost packets, restarts and deaths
  rackmem-lab soak                               processes are killed and stopped, and every answer judged
  rackmem-lab tpcc --nodes 4 --distribution 20   TPC-C, its consistency conditions checked
  rackmem-lab dissector > rackmem.lua            for tshark -X lua_script:rackmem.lua
  rackmem-lab explain read-miss                  what passes between the places, with times
  rackmem-lab riscv run hot_word.elf --nodes 64  a program whose remote atomics are instructions, on 64 nodes";

/// What shows that rackmem is right, and how fast it is: checkers, benchmarks, figures of the papers, peers.
#[derive(Debug, Parser)]
#[command(name = "rackmem-lab", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct RackmemLab {
    #[command(subcommand)]
    command: Command,
}

/// The subcommands, one module each.
#[derive(Debug, Subcommand)]
enum Command {
    /// Measure what accesses cost, beside a yardstick of the same run
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Decide properties of the protocol by looking at every state of small racks
    #[command(subcommand)]
    Check(check::Check),
    /// Print a program for Wireshark and tshark that shows what a rack sends over UDP
    Dissector,
    /// Show what passes between the places of a rack in a scenario: who sends what to whom, and when
    Explain(explain::Args),
    /// Run the experiments of the papers on a simulated rack, and put their numbers beside ours
    Figure(figure::Args),
    /// Run the protocol under faults and restarts, one random run a seed, and check it after every step
    Fuzz(fuzz::Args),
    /// Run PageRank or a breadth-first search on a rack, beside the same in plain Rust, and verify the result
    Graph(graph::Args),
    /// Run YCSB on what is used today, and on racks of processes, in one run
    Peers(peers::Args),
    /// Run the commands that a page names, and write what they print into it
    Record(record::Args),
    /// Compare what a word of another node costs with the routines of MPI and OpenSHMEM, in instructions
    Routines(routines::Args),
    /// Run programs for RISC-V cores that have remote atomics as instructions
    #[command(subcommand)]
    Riscv(riscv::Riscv),
    /// Kill and stop the processes of a rack again and again, and judge every answer that it gave
    Soak(soak::Args),
    /// Run TPC-C on a rack, beside the same engine on plain memory, and check its consistency conditions
    Tpcc(tpcc::Args),
    /// Be one process of many: what other commands start
    #[command(hide = true)]
    Place,
}

impl CommandLine for RackmemLab {
    fn run(self) -> Result<(), Fault> {
        match self.command {
            Command::Bench(bench) => bench::run(&bench),
            Command::Check(check) => check::run(&check),
            Command::Dissector => dissector::run(),
            Command::Explain(args) => explain::run(&args),
            Command::Figure(args) => figure::run(&args),
            Command::Fuzz(args) => fuzz::run(&args),
            Command::Graph(args) => graph::run(&args),
            Command::Peers(args) => peers::run(&args),
            Command::Record(args) => record::run(&args),
            Command::Routines(args) => routines::run(&args),
            Command::Riscv(args) => riscv::run(&args),
            Command::Soak(args) => soak::run(&args),
            Command::Tpcc(args) => tpcc::run(&args),
            Command::Place => {
                let mut jobs = bench::jobs();
                jobs.extend([
                    Job::of(ycsb::networked::place),
                    Job::of(bench::nodes::place::<graph::Part>),
                    Job::of(peers::place),
                    Job::of(peers::serve),
                    Job::of(soak::place),
                    Job::of(bench::nodes::place::<tpcc::Part>),
                ]);
                child::run(jobs)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_of_all_subcommands_fit_together() {
        RackmemLab::command().debug_assert();
    }
}
