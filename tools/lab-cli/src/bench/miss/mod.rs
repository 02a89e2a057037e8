//! `rackmem-lab bench miss`: what it costs when the block is not there, or not writable.
//!
//! | file | holds |
//! | --- | --- |
//! | `node` | a node whose misses are timed |
//! | `here` | an embedded rack, against copying a block |
//! | `processes` | a rack of processes, against the bare exchange of the same messages |

mod here;
mod node;
pub(super) mod processes;

pub(crate) use node::{Reader, compute};
pub(in crate::bench) use processes::Misses;

use cli::fault::Fault;
use cli::processes::TransportKind;
use cli::size::Bytes;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What carries the rack's messages. With `shm` and `udp` the switch and both nodes are processes, and the yardstick
    /// is the bare exchange of the same messages
    #[arg(long, value_enum, default_value_t = TransportKind::Inline)]
    transport: TransportKind,

    /// The unit of coherence
    #[arg(long, default_value = "4KiB")]
    pub(super) block_size: Bytes,

    /// Rounds; the medians are printed
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(3..=10_000))]
    pub(super) rounds: u64,

    /// Threads of the crowded part, each on its own node and blocks; more than cores is the point (inline only)
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=32))]
    threads: u16,

    /// Misses that a node is asked to answer whose application computes on every core (shm and udp only)
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    busy_misses: u64,

    /// No UNLOCK waits for the next message to the switch, to travel in its datagram: to measure what that saves (udp only)
    #[arg(long)]
    no_coalescing: bool,

    /// Through pointers into mapped memory, in a rack of processes over shared memory, against bare faults and the same by calls
    #[arg(long, conflicts_with_all = ["transport", "threads", "busy_misses", "no_coalescing"])]
    mapped: bool,

    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

/// Blocks that one round accesses: few enough to stay in the processor's second-level cache twice.
pub(super) const BLOCKS: u64 = 48;

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    if args.no_coalescing && args.transport != TransportKind::Udp {
        return Err(Fault::usage("--no-coalescing is about datagrams: it takes --transport udp"));
    }
    match args.transport {
        _ if args.mapped => super::mapped::run_faults(args),
        TransportKind::Inline => here::run(args),
        _ => processes::run(args),
    }
}
