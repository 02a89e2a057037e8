//! The flags of `rackmem ycsb`, and what they ask for.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use apps::ordered::OrderedStore;
use clap::ValueEnum;
use rackmem::BlockSize;
use serde::{Deserialize, Serialize};

use super::core_file::{self, Overrides};
use super::engine::{Chains, Choice, Engine, MOST_ORDERED_DIGITS};
use super::workload::{OperationKind, Workload};
use crate::fault::Fault;
use crate::processes::TransportKind;
use crate::processes::place::Steers;
use crate::size::Bytes;

/// Milliseconds for which clients of chains use what they know: where reads are steered what is old leads no further from the tail.
const LEASE: u32 = 400;
const STEERED_LEASE: u32 = 4000;

const EXAMPLES: &str = "\
Examples:
  rackmem ycsb                                       A, B and C one after another on 8 nodes
  rackmem ycsb --workload A,F --nodes 4 --threads 2
  rackmem ycsb --workload E                          scans, on a store with an order of keys
  rackmem ycsb --workload ./workloads/workloada --records 1000000
  rackmem ycsb --workload C --directory home         without the switch: the homes do all the work
  rackmem ycsb --store chain --workload A --steering all --steer-reads
  rackmem ycsb --transport shm --nodes 4             a process for each node and one for the switch
  rackmem ycsb --transport shm --nodes 2 --store mapped
  rackmem ycsb --workload A --records 1000 --operations 100000 --history run.jsonl

Sizes are bytes or binary units: 4096, 4KiB, 64MiB.";

/// Run YCSB workloads on a key-value store in the memory of a rack.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A, B, C, D, E, F, or the path of an unmodified YCSB core property file; several after commas, or by
    /// repeating the flag. Each runs on a fresh rack
    #[arg(short, long, value_name = "A|B|C|D|E|F|FILE", default_value = "A,B,C")]
    workload: Vec<String>,

    /// What carries the rack's messages. With `shm` and `udp` the rack is a process for each node and one for the
    /// switch, which this command starts and ends
    #[arg(long, value_enum, default_value_t = TransportKind::Inline)]
    pub(crate) transport: TransportKind,

    /// Nodes of the rack
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    pub(crate) nodes: usize,

    /// Application threads on each node, up to 1024
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads)]
    pub(crate) threads: usize,

    /// Records to load [default: 40000, or what the file says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    records: Option<u64>,

    /// Operations of each run, all threads together [default: 1000000, 50000 scans, or what the file says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1 << 50))]
    operations: Option<u64>,

    /// Operations before each run, all threads together, that are not measured: they warm the caches
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warm_up: u64,

    /// The unit of coherence: a power of two from 64 to 1MiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = block_size)]
    pub(crate) block_size: BlockSize,

    /// Cache of each node
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub(crate) cache: Bytes,

    /// Directory entries in the switch
    #[arg(long, value_name = "N", default_value_t = 375_000)]
    pub(crate) switch_entries: usize,

    /// Who keeps the directory: the switch for hot blocks and the homes for cold ones, or one of them for all
    #[arg(long, value_enum, default_value_t = Directory::Auto)]
    pub(crate) directory: Directory,

    /// Requests for a block that another node is just getting wait in line, and are not refused
    #[arg(long)]
    pub(crate) queue: bool,

    /// Small reads of blocks that other nodes keep writing are done where the block is, and bring no copy
    #[arg(long)]
    pub(crate) peek: bool,

    /// Which engine keeps the records. By default coherent memory, with an order of keys if there are scans, and buckets behind locks for
    /// records that do not fit a block
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub(crate) store: Choice,

    /// Which keys of chains the switch holds the tails of, to send each append to the true one: none, the so many hottest, or all
    /// (only with --store chain)
    #[arg(long, value_name = "off|N|all", default_value = "off")]
    pub(crate) steering: Steering,

    /// The switch sends reads of chains to the tail, too, if they fit a packet (only with --steering). What was replaced then stays in quarantine for
    /// seconds longer before its memory is used anew
    #[arg(long)]
    pub(crate) steer_reads: bool,

    /// A switch that was restarted is told the tails of the keys that are written to most (only with --steering)
    #[arg(long)]
    pub(crate) preload: bool,

    /// Milliseconds for which clients of chains use what they know of a key without asking: 1 to 20000 [default: 400, or 4000 with
    /// --steer-reads] (only with --store chain)
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    lease: Option<u32>,

    /// Nodes that keep each record: 1 to 3. It then outlives the death of one less (only with --store coherent or ordered and processes, or with
    /// --store chain)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=3))]
    copies: Option<u8>,

    /// Nodes whose memories a store of chains has, from node 0 on [default: as many as --copies, which a switch that steers wants] (only with
    /// --store chain)
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    memories: Option<usize>,

    /// Fixes every random choice of the clients and the rack; how threads interleave stays up to the machine
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub(crate) seed: u64,

    /// Print one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Write every operation to FILE, one JSON object a line, to be checked for linearizability. Slows the run
    /// down: updates then read the whole record in their atomic step
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
}

/// Who keeps the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
pub enum Directory {
    /// The switch for hot blocks, the homes for cold ones
    Auto,
    /// The switch for every block that finds room there
    Switch,
    /// The homes for all blocks
    Home,
}

impl Directory {
    /// Its name on the command line and in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Switch => "switch",
            Self::Home => "home",
        }
    }
}

impl From<Directory> for rackmem::Directory {
    fn from(directory: Directory) -> Self {
        match directory {
            Directory::Auto => Self::Auto,
            Directory::Switch => Self::Switch,
            Directory::Home => Self::Home,
        }
    }
}

impl Args {
    /// The workloads, in the order in which they were asked for, and warnings about their files.
    pub(crate) fn workloads(&self) -> Result<(Vec<Workload>, Vec<String>), Fault> {
        let overrides = Overrides { records: self.records, operations: self.operations };
        let (mut workloads, mut warnings) = (Vec::new(), Vec::new());
        for name in self.workload.iter().flat_map(|given| names(given)) {
            if let Some(letter) = letter(name) {
                let workload = Workload::letter(letter).ok_or_else(|| Fault::usage(no_letter(letter)))?;
                workloads.push(Workload {
                    records: self.records.unwrap_or(workload.records),
                    operations: self.operations.unwrap_or(workload.operations),
                    ..workload
                });
            } else {
                let (workload, said) = core_file::read(Path::new(name), overrides).map_err(Fault::usage)?;
                workloads.push(workload);
                warnings.extend(said);
            }
        }
        Ok((workloads, warnings))
    }

    /// Which engine a workload runs on.
    pub(crate) fn engine(&self, workload: &Workload) -> Engine {
        let coherent = self.memory_copies() > 1 && self.store == Choice::Auto && !workload.mix.scans();
        let store = if coherent { Choice::Coherent } else { self.store };
        store.engine(workload, self.block_size, self.chains())
    }

    /// How a store of chains is created.
    pub(crate) fn chains(&self) -> Chains {
        let lease = self.lease.unwrap_or(if self.steer_reads { STEERED_LEASE } else { LEASE });
        let copies = self.copies.unwrap_or(1);
        let memories = self.memories.unwrap_or(copies.into());
        Chains { lease, clients: self.nodes * self.threads, memories, copies }
    }

    fn check_copies(&self) -> Result<(), Fault> {
        let copies = self.memory_copies();
        let instead = match self.transport {
            _ if copies == 1 => return Ok(()),
            TransportKind::Inline => "a rack in one process dies as a whole: add --transport shm or udp",
            _ if !matches!(self.store, Choice::Auto | Choice::Coherent | Choice::Ordered) => {
                "only coherent memory and chains have them: use --store coherent, ordered or chain"
            }
            _ if copies > self.nodes => "each is on a node of its own: take more --nodes",
            _ => return Ok(()),
        };
        Err(Fault::usage(format_args!("--copies {copies}: {instead}")))
    }

    /// How many nodes keep what is in coherent memory.
    pub(crate) fn memory_copies(&self) -> usize {
        if self.store == Choice::Chain { 1 } else { self.copies.unwrap_or(1).into() }
    }

    /// What the switch does with packets of chains.
    pub(crate) fn steers(&self) -> Option<Steers> {
        let Self { steer_reads, preload, .. } = *self;
        self.steering.keys().map(|keys| Steers { keys, reads: steer_reads, preload })
    }

    /// Scans need an order of keys; and there is none of long keys, or of records that are longer than a block.
    fn check_order(&self, workload: &Workload) -> Result<(), Fault> {
        let Workload { name, .. } = workload;
        let why = match self.engine(workload) {
            Engine::Ordered if self.block_size.bytes() < LEAST_ORDERED_BLOCK => {
                format!(
                    "--store ordered has blocks of {LEAST_ORDERED_BLOCK} bytes or more: take a larger --block-size"
                )
            }
            Engine::Ordered
                if workload.record_len() > OrderedStore::longest_record(self.block_size.len()) =>
            {
                format!(
                    "--store ordered keeps each record in one block: take a --block-size of more than {} bytes",
                    workload.record_len()
                )
            }
            Engine::Ordered if workload.names.digits > MOST_ORDERED_DIGITS => {
                format!(
                    "--store ordered has keys of at most {MOST_ORDERED_DIGITS} digits: write `zeropadding={MOST_ORDERED_DIGITS}`, or less"
                )
            }
            Engine::Ordered => return Ok(()),
            _ if !workload.mix.scans() => return Ok(()),
            engine => format!(
                "--store {} has no order of keys, and cannot scan: use --store ordered",
                engine.name()
            ),
        };
        Err(Fault::usage(format_args!("workload {name}: {why}")))
    }

    /// The workloads as the store does them: of chains, values are replaced as a whole.
    pub(crate) fn for_store(&self, workloads: Vec<Workload>) -> Result<Vec<Workload>, Fault> {
        workloads.iter().try_for_each(|workload| self.check_order(workload))?;
        if let Some(workload) =
            workloads.iter().find(|workload| workload.mix.scans()).filter(|_| self.history.is_some())
        {
            return Err(Fault::usage(format_args!(
                "workload {} scans, and a history is one of single keys: leave out --history",
                workload.name
            )));
        }
        if self.store == Choice::Mapped {
            if self.transport == TransportKind::Inline {
                return Err(Fault::usage(
                    "--store mapped is reached through pointers, which do not say which node of one process uses them: add \
                     --transport shm or udp, where each node is a process",
                ));
            }
            rackmem::can_map().map_err(|why| Fault::usage(format_args!("--store mapped: {why}")))?;
        }
        if self.store != Choice::Chain {
            let given = [("--steering", self.steering != Steering::Off), ("--lease", self.lease.is_some())];
            let given =
                given.into_iter().chain([("--steer-reads", self.steer_reads), ("--preload", self.preload)]);
            let mut given = given.chain([("--memories", self.memories.is_some())]);
            if let Some((flag, _)) = given.find(|(_, is_given)| *is_given) {
                return Err(Fault::usage(format_args!("{flag} is about chains: add --store chain")));
            }
            self.check_copies()?;
            return Ok(workloads);
        }
        if self.steering == Steering::Off && (self.steer_reads || self.preload) {
            return Err(Fault::usage(
                "--steer-reads and --preload are about a switch that steers: add --steering all, or how many keys",
            ));
        }
        let Chains { memories, copies, .. } = self.chains();
        if memories > usize::from(copies) && self.steering != Steering::Off {
            return Err(Fault::usage(format_args!(
                "what is in {memories} memories and has {copies} copies is not steered: leave out --steering, or --memories"
            )));
        }
        if usize::from(copies) > memories {
            return Err(Fault::usage(format_args!(
                "--copies {copies} with --memories {memories}: each copy is in a memory of its own; take --memories {copies} at least, \
                 or fewer --copies"
            )));
        }
        if memories > self.nodes {
            return Err(Fault::usage(format_args!(
                "{memories} memories with --nodes {}: each memory is on a node of its own; take --nodes {memories} at least, or fewer \
                 --memories and --copies",
                self.nodes
            )));
        }
        if let Some(workload) =
            workloads.iter().find(|workload| workload.mix.share(OperationKind::ReadModifyWrite) > 0.0)
        {
            return Err(Fault::usage(format_args!(
                "workload {} changes records depending on what they were, and a chain takes whatever is put last; use \
                 another store for it",
                workload.name
            )));
        }
        Ok(workloads.into_iter().map(|workload| Workload { write_all_fields: true, ..workload }).collect())
    }
}

/// Which keys a switch holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Steering {
    Off,
    Hottest(u64),
    All,
}

impl Steering {
    /// How many keys the switch holds; none: it does not steer.
    pub(crate) fn keys(self) -> Option<usize> {
        match self {
            Self::Off => None,
            Self::Hottest(keys) => Some(usize::try_from(keys).unwrap_or(usize::MAX)),
            Self::All => Some(usize::MAX),
        }
    }

    /// What it is called in results.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Off => "off".to_owned(),
            Self::Hottest(keys) => keys.to_string(),
            Self::All => "all".to_owned(),
        }
    }
}

impl FromStr for Steering {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "all" => Ok(Self::All),
            number => match number.parse() {
                Ok(0) => Ok(Self::Off),
                Ok(number) => Ok(Self::Hottest(number)),
                Err(_) => Err("off, all, or how many keys".to_owned()),
            },
        }
    }
}

/// What a node of the tree takes.
const LEAST_ORDERED_BLOCK: u64 = 256;

/// The names in a value: itself if there is a file of that name (which may have commas), else what the commas
/// separate.
fn names(given: &str) -> Vec<&str> {
    if Path::new(given).is_file() { vec![given] } else { given.split(',').map(str::trim).collect() }
}

/// The letter that a name is, if it is one.
fn letter(name: &str) -> Option<char> {
    let mut chars = name.chars();
    chars.next().filter(|c| c.is_ascii_alphabetic() && chars.next().is_none())
}

fn no_letter(letter: char) -> String {
    format!(
        "there is no workload {letter}: --workload takes A, B, C, D, E, F or the path of a YCSB core property file \
         (write ./{letter} for a file of that name)"
    )
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(error.to_string()),
    }
}

/// A client takes about 100 KiB beside its thread: what no machine could run is refused before it eats the memory.
fn threads(text: &str) -> Result<usize, String> {
    match at_least_one(text)? {
        number @ ..=MOST_THREADS => Ok(number),
        _ => Err(format!("at most {MOST_THREADS} are possible on a node")),
    }
}

const MOST_THREADS: usize = 1024;

/// A block size, as it is typed.
pub fn block_size(text: &str) -> Result<BlockSize, String> {
    let bytes: Bytes = text.parse()?;
    BlockSize::new(bytes.0).ok_or_else(|| {
        format!(
            "{bytes} is not a block size: use a power of two from {} to {}",
            BlockSize::MIN,
            BlockSize::MAX
        )
    })
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
