//! `rackmem-lab soak`: a rack of processes under load for as long as one likes, while its network loses, doubles and
//! reorders packets and its processes are killed, stopped and started again. Every answer is judged.
//!
//! ```text
//!   round: clients work on words (half reads, half changes, zipf 0.99) ── each writes its history into a file
//!            meanwhile: the switch, or a node, is killed and comes back; or a node is stopped and continued
//!          clients halt; one node reads all words; the round's history must be linearizable, key by key
//! ```
//! A word whose contents died with a node is given up, and another one is allocated in its place. With copies, words outlive
//! nodes: what a dead node did after what it synced, or others saw, may not have happened; nothing else is forgiven. When a round does not
//! end, or an answer was wrong, what can be known of that is left in a directory.
//!
//! | file | concern |
//! | --- | --- |
//! | `rounds` | the command's side: rounds, and what is done to processes |
//! | `events` | what processes tell it meanwhile |
//! | `node` | a node's process, or the switch's |
//! | `client` | a thread that works on the words |
//! | `stores` | `--chains`: words that are keys of a store |
//! | `shared` | what the threads of a node's process share |
//! | `waiting` | how long something may take |
//! | `evidence` | what is left of a run that is stuck or wrong |
//! | `log` | a client's history, in a file that outlives its process |
//! | `judge` | the histories of a round, decided |

mod client;
mod events;
mod evidence;
mod judge;
mod log;
mod node;
mod pointers;
mod rounds;
mod shared;
mod stores;
mod waiting;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

use rackmem::dataplane::Claim;

use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;

pub(crate) use node::place;

const EXAMPLES: &str = "\
Examples:
  rackmem-lab soak                                  three rounds over UDP with losses: a kill in each
  rackmem-lab soak --rounds 60 --round-seconds 60   an hour
  rackmem-lab soak --transport shm --harm switch    only the switch dies
  rackmem-lab soak --transport wire --keep /sys/fs/bpf/soak
  rackmem-lab soak --copies 2 --harm node           words outlive nodes, as far as they were synced or seen
  rackmem-lab soak --copies 2 --chains              a store of chains outlives its memories and its metadata server
  rackmem-lab soak --copies 2 --chains --steered    so does one whose appends a switch steers

Exit codes: 1 an answer was wrong, 3 a client was stuck, 4 a machine of the protocol panicked.";

/// What is done to a process in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Harm {
    /// The switch's process is killed, and started again
    Switch,
    /// A node's process is killed, and started again
    Node,
    /// A node's process is stopped for longer than the rack's timeout, and continued
    Pause,
    /// A node's cable is pulled, for longer than the rack's timeout or not, and put back
    Cut,
}

/// The flags.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What carries the messages
    #[arg(long, value_enum, default_value_t = TransportKind::Udp)]
    transport: TransportKind,
    /// Nodes, a process each
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=16))]
    nodes: u16,
    /// Clients of each node
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    threads: u16,
    /// Words that the clients work on
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    words: u32,
    /// Rounds; each has one harm
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Seconds of a round
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=3600))]
    round_seconds: u64,
    /// What is done, in turn [default: switch,node,pause, and cut with --transport wire]
    #[arg(long, value_enum, value_delimiter = ',')]
    harm: Vec<Harm>,
    /// With --transport wire: the switch's program is kept in this directory of a file system of bpf when its process is killed
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Packets in a thousand that are lost; as many are doubled
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(0..=500))]
    loss_per_mille: u16,
    /// Milliseconds after which a silent node is given up
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    timeout_ms: u64,
    /// Seconds after which an operation, or whatever else the run waits for, counts as stuck
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    stuck_seconds: u64,
    /// Every other operation goes through a pointer into mapped memory
    #[arg(long)]
    mapped: bool,
    /// Nodes that keep each word; with 2 or 3, clients also sync, and no word may be lost
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    copies: u8,
    /// The words are keys of a store of chains with copies: what was put is there, without any sync
    #[arg(long, conflicts_with = "mapped")]
    chains: bool,
    /// The switch steers, and all first copies are in one memory
    #[arg(long, requires = "chains")]
    steered: bool,
    /// Operations a second of each client, at most: histories are kept until they are judged
    #[arg(long, default_value_t = 2000)]
    rate: u32,
    /// Fixes what is done when, and to whom
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    if args.transport == TransportKind::Inline {
        return Err(Fault::usage(
            "processes cannot be killed one by one over --transport inline: use shm or udp",
        ));
    }
    if args.harm.contains(&Harm::Cut) && !args.transport.has_cables() {
        return Err(Fault::usage(
            "only a rack over --transport wire has cables to cut: leave --harm cut out",
        ));
    }
    if let Some(keep) = args.keep.as_ref().filter(|_| !args.transport.in_kernel()) {
        return Err(Fault::usage(format_args!(
            "--keep {} is for a program in the kernel: add --transport wire",
            keep.display()
        )));
    }
    if u16::from(args.copies) > args.nodes {
        return Err(Fault::usage(format_args!(
            "{} nodes cannot keep {} copies: add --nodes {}",
            args.nodes, args.copies, args.copies
        )));
    }
    if args.chains && (args.copies == 1 || u16::from(args.copies) == args.nodes) {
        return Err(Fault::usage(
            "--chains is about a store whose copies are made anew at other nodes: add --copies 2, and have more nodes than that",
        ));
    }
    if args.mapped {
        rackmem::can_map().map_err(|why| Fault::usage(format_args!("nothing can be mapped here: {why}")))?;
    }
    let interrupt = Interrupt::listen()?;
    let outcome = soak(args, &interrupt);
    // All its processes have ended.
    let removed = args.keep.as_ref().map_or(Ok(()), |keep| Claim::remove(keep));
    let stays = |error| format!("the switch's program stays at its ports: {error}");
    outcome.and(removed.map_err(|error| Fault::failed(stays(error))))
}

/// Rounds, until something is wrong.
fn soak(args: &Args, interrupt: &Interrupt) -> Result<(), Fault> {
    let mut soak = rounds::Soak::start(args, interrupt)?;
    let mut done = Vec::new();
    let outcome = (0..args.rounds).try_for_each(|round| {
        let told = soak.round(round).map_err(|fault| soak.with_evidence(fault))?;
        if !args.json {
            output::print(&format!("{told}\n"))?;
        }
        done.push(told);
        Ok(())
    });
    if args.json {
        output::print_json(&done)?;
    }
    match outcome {
        Err(Fault::Interrupted) | Ok(()) if interrupt.requested() => Err(Fault::Interrupted),
        Err(Fault::Failed(message)) => Err(Fault::Failed(format!(
            "{message}\n  run: rackmem-lab soak --seed {} --transport {}{}{}{}{} (what processes do at the same time differs from \
             run to run)",
            args.seed,
            args.transport.name(),
            if args.mapped { " --mapped" } else { "" },
            if args.chains { " --chains" } else { "" },
            if args.steered { " --steered" } else { "" },
            if args.copies > 1 { format!(" --copies {}", args.copies) } else { String::new() }
        ))),
        other => other,
    }
}

impl Args {
    /// What is done in a round.
    fn harm(&self, round: u64) -> Harm {
        const ALL: [Harm; 4] = [Harm::Switch, Harm::Node, Harm::Pause, Harm::Cut];
        let harm = match &self.harm[..] {
            [] if self.transport.has_cables() => &ALL[..],
            [] => &ALL[..3],
            given => given,
        };
        harm[(round % harm.len() as u64) as usize]
    }

    fn round(&self) -> Duration {
        Duration::from_secs(self.round_seconds)
    }

    fn stuck(&self) -> Duration {
        Duration::from_secs(self.stuck_seconds)
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}
