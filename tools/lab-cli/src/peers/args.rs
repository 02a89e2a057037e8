//! The flags of `rackmem-lab peers`.

use std::path::PathBuf;

use cli::fault::Fault;
use cli::ycsb::workload::{OperationKind, Workload};

/// Run the same YCSB mixes on Redis and memcached, if they are installed, and on racks of processes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Mixes: letters of YCSB workloads that do not insert, with commas between them
    #[arg(short, long, value_name = "LETTERS", default_value = "A,B,C")]
    workload: String,

    /// Nodes of the racks, and client processes of the servers
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) nodes: u16,

    /// Application threads on each node of the racks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) threads: u16,

    /// Connections to each server, all client processes together
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(super) connections: u16,

    /// Requests that each connection has in flight where it sends ahead
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=1024))]
    pub(super) depth: u16,

    /// Records
    #[arg(long, value_name = "N", default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    records: u64,

    /// Operations of each run, after some that warm up; racks do ten times as many where nothing is written
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    operations: u64,

    /// Fixes every random choice of the clients
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub(super) seed: u64,

    /// Instead of the mixes: one record of 128 bytes under one lock, updated by 1 to 8 clients, on Redis and etcd and on racks
    #[arg(long, conflicts_with_all = ["workload", "nodes", "threads", "connections", "depth", "records", "operations", "seed"])]
    pub(super) locks: bool,

    /// Instead of the mixes: operations on words of another process, with OpenSHMEM and MPI, and on racks
    #[arg(long, conflicts_with_all = ["locks", "workload", "nodes", "threads", "connections", "depth", "records", "operations", "seed"])]
    pub(super) words: bool,

    /// With --words: processes, of which one has the words
    #[arg(long, value_name = "LIST", requires = "words", value_delimiter = ',', default_value = "2,3,4", value_parser = clap::value_parser!(u16).range(2..=16))]
    pub(super) processes: Vec<u16>,

    /// With --words: milliseconds of each measurement in a round
    #[arg(long, value_name = "N", requires = "words", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(super) millis: u64,

    /// With --words: rounds, of which the medians are printed
    #[arg(long, value_name = "N", requires = "words", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(super) rounds: u64,

    /// With --words: instead of times, the requester's instructions for an operation, counted by valgrind's callgrind
    #[arg(long, requires = "words", conflicts_with_all = ["processes", "millis", "rounds"])]
    pub(super) instructions: bool,

    /// Where data and the drawing go
    #[arg(long, value_name = "DIR", default_value = "lab-out")]
    pub(super) out: PathBuf,

    /// Print everything as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A rack reads from its caches: it needs more operations to be measured for as long.
const READ_TIMES: u64 = 10;

impl Args {
    /// The mixes, as the servers run them.
    pub(super) fn workloads(&self) -> Result<Vec<Workload>, Fault> {
        let wrong = |name: &str| {
            Fault::usage(format_args!(
                "--workload {name} is no letter of a workload that does not insert: A, B, C or F"
            ))
        };
        self.workload
            .split(',')
            .map(|name| {
                let letter = name.trim().parse().map_err(|_| wrong(name))?;
                let workload = Workload::letter(letter).ok_or_else(|| wrong(name))?;
                if workload.mix.insert_share() > 0.0 {
                    return Err(wrong(name));
                }
                Ok(Workload { records: self.records, operations: self.operations, ..workload })
            })
            .collect()
    }

    /// The same mix, as racks run it.
    pub(super) fn on_rack(workload: &Workload) -> Workload {
        let times = if workload.mix.share(OperationKind::Read) == 1.0 { READ_TIMES } else { 1 };
        Workload { operations: workload.operations * times, ..workload.clone() }
    }
}
