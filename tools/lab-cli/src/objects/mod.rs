//! `rackmem-lab objects`: a read-mostly store of objects under load, with one layout of objects and another.
//!
//! One process for each node of a rack. They load the keys, and then run a mix of lookups and updates, the layouts taking turns in
//! each round.
//!
//! | file | holds |
//! | --- | --- |
//! | `worker` | what threads do |
//! | `place`, `subject` | the rack on which they do it: a child's side, and the command's |
//! | `report` | what comes out |

mod place;
mod report;
mod subject;
mod worker;

pub(crate) use place::place;

use apps::objects::Config;
use rackmem::BlockSize;

use self::report::{Report, Row};
use self::subject::Subject;
use self::worker::{Done, Kind, Load};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;
use cli::ycsb::Directory;

const EXAMPLES: &str = "\
Examples:
  rackmem-lab objects                                  both layouts, over shared memory
  rackmem-lab objects --transport udp --nodes 4        the same where each lookup asks another machine
  rackmem-lab objects --layout sabre --reads 50 --json one layout, as many updates as lookups";

/// Flags.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Nodes, each a process of its own
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,

    /// Threads on each node
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,

    /// How objects are kept; each has a store of its own
    #[arg(long, value_enum, value_delimiter = ',', default_value = "sabre,lines")]
    layout: Vec<Kind>,

    /// Keys that are loaded
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    keys: u64,

    /// Bytes of a value
    #[arg(long, default_value = "128")]
    value_size: Bytes,

    /// Keys that a bucket has room for; a lookup reads a whole bucket
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: u16,

    /// Per cent of operations that only read; the others update
    #[arg(long, default_value_t = 95, value_parser = clap::value_parser!(u8).range(0..=100))]
    reads: u8,

    /// How skewed the choice of the key is: 0 for not at all
    #[arg(long, default_value_t = 0.99)]
    zipf: f64,

    /// What carries the messages
    #[arg(long, value_enum, default_value = "shm")]
    transport: TransportKind,

    /// Milliseconds per measurement
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    millis: u64,

    /// Rounds, in each of which the layouts take turns; the medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Values name their key, and each write of it.
const SMALLEST_VALUE: u64 = 16;
const LARGEST_VALUE: u64 = 64 << 10;
/// All stores together.
const MOST_MEMORY: u64 = 4 << 30;

impl Args {
    fn check(&self) -> Result<(), Fault> {
        let value = self.value_size;
        if !(SMALLEST_VALUE..=LARGEST_VALUE).contains(&value.0) {
            return Err(Fault::usage(format_args!("--value-size {value} is not between 16 B and 64 KiB")));
        }
        if !(0.0..=10.0).contains(&self.zipf) {
            return Err(Fault::usage(format_args!("--zipf {} is not between 0 and 10", self.zipf)));
        }
        let twice = (1..self.layout.len()).find(|at| self.layout[..*at].contains(&self.layout[*at]));
        if let Some(twice) = twice {
            return Err(Fault::usage(format_args!("--layout names {} twice", self.layout[twice].name())));
        }
        let config = self.load().config();
        if config.bucket_bytes() as u64 > rackmem::ByteObjects::LONGEST as u64 {
            return Err(Fault::usage(format_args!(
                "--slots {} of --value-size {value} make a bucket of more than 1 MiB",
                self.slots
            )));
        }
        if self.bytes(&config) > MOST_MEMORY {
            return Err(Fault::usage("--keys and --value-size ask for more than 4 GiB"));
        }
        Ok(())
    }

    fn load(&self) -> Load {
        Load {
            keys: self.keys,
            value_bytes: self.value_size.0,
            slots: u64::from(self.slots),
            read_percent: u64::from(self.reads),
            theta: self.zipf,
        }
    }

    /// Bytes of all stores on each node, at most.
    fn bytes(&self, config: &Config) -> u64 {
        let each = config.objects_on_each(usize::from(self.nodes));
        let bucket = config.bucket_bytes() as u64 * 5 / 4 + 256;
        each.saturating_mul(bucket).saturating_mul(self.layout.len() as u64)
    }

    fn spec(&self) -> RackSpec {
        let bytes = self.bytes(&self.load().config());
        RackSpec {
            nodes: usize::from(self.nodes),
            block_bytes: BlockSize::DEFAULT.bytes(),
            cache: 16 << 20,
            memory: (bytes + bytes / 2).next_power_of_two().max(64 << 20),
            switch_entries: 65_536,
            directory: Directory::Switch,
            queue: false,
            peek: false,
            lock_copies: RackSpec::LOCK_COPIES,
            lock_region: RackSpec::LOCK_REGION,
            steering: None,
            seed: 1,
        }
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    args.check()?;
    let interrupt = Interrupt::listen()
        .map_err(|error| Fault::failed(format_args!("cannot listen for Ctrl-C: {error}")))?;
    let load = args.load();
    let mut rack = Subject::start(args, &load, &interrupt)?;
    for kind in &args.layout {
        rack.load(*kind)?;
    }
    let mut rounds: Vec<Vec<Vec<Done>>> = Vec::new();
    // The first round warms up.
    'rounds: for round in 0..=args.rounds {
        let mut of_kinds = Vec::new();
        for kind in &args.layout {
            of_kinds.push(rack.run(*kind, args.millis)?);
            if interrupt.requested() {
                break 'rounds;
            }
        }
        if round > 0 {
            rounds.push(of_kinds);
        }
    }
    for kind in args.layout.iter().filter(|_| !interrupt.requested()) {
        rack.verify(*kind)?;
    }
    if !rounds.is_empty() {
        let report = Report {
            command: "objects",
            version: env!("CARGO_PKG_VERSION"),
            transport: args.transport,
            nodes: args.nodes,
            threads: args.threads,
            keys: args.keys,
            value_bytes: args.value_size.0,
            slots: args.slots,
            bucket_bytes: load.config().bucket_bytes(),
            read_percent: args.reads,
            zipf: args.zipf,
            millis: args.millis,
            rounds: rounds.len(),
            layouts: Row::all(&args.layout, &rounds),
        };
        if args.json { output::print_json(&report)? } else { output::print(&report.text())? }
    }
    if interrupt.requested() { Err(Fault::Interrupted) } else { Ok(()) }
}
