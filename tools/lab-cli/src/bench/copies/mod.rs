//! `rackmem-lab bench copies`: what it costs that memory outlives its node.
//!
//! Node 1 writes, node 0 reads; blocks are at home on node 2, and with copies on node 0, too. One block after the other, with and
//! without copies, in turns. And a lock, which both write.
//!
//! | file | holds |
//! | --- | --- |
//! | `keeper` | a node of the rack |
//! | `again` | `--again`: a node dies, and what it kept is copied |

mod again;
mod keeper;

use rackmem::{BlockSize, NodeId};
use serde::Serialize;

use super::miss::processes::Figure;
use super::nodes::{Nodes, spec};
use super::pingpong::block_of;
use super::rounds::table;
use super::samples::{Rounds, Samples};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;
use cli::ycsb::Directory;

pub(crate) use keeper::Keeper;
use keeper::{LOCKED, Order};

/// The flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What carries the rack's messages
    #[arg(long, value_enum, default_value_t = TransportKind::Shm)]
    transport: TransportKind,

    /// The unit of coherence
    #[arg(long, default_value = "4KiB")]
    block_size: Bytes,

    /// Rounds; the medians are printed
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(3..=10_000))]
    rounds: u64,

    /// Instead: how long it takes until so much memory is on two nodes again when one of them has died, and what goes on meanwhile
    #[arg(long, value_name = "BYTES", conflicts_with = "rounds")]
    again: Option<Bytes>,

    /// With --again: of a store of chains with values of 1 KiB, in which nodes get and put meanwhile
    #[arg(long, requires = "again")]
    chains: bool,

    /// With --again: seconds for which the work is measured, before and after
    #[arg(long, default_value_t = 5, requires = "again", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Where the blocks are at home.
const HOME: NodeId = NodeId(2);
const BLOCKS: u64 = 16;
/// A round trip is two messages of the three of a read of a modified block.
const ROUND_TRIP: f64 = 2.0 / 3.0;

/// What is measured, in this order.
#[derive(Default)]
struct Measured {
    write: Vec<Samples>,
    write_again: Vec<Samples>,
    read: Vec<Samples>,
    lock: Vec<Samples>,
    lock_again: Vec<Samples>,
}

#[derive(Debug, Serialize)]
struct Report {
    transport: TransportKind,
    block_size: Bytes,
    rounds: u64,
    figures: Vec<Figure>,
    most_ratio_of_put_and_sync: f64,
    met: bool,
}

/// What there can be copies of.
fn check(args: &Args) -> Result<BlockSize, Fault> {
    if args.transport == TransportKind::Inline {
        return Err(Fault::usage("an embedded rack dies as a whole: --transport inline has no copies"));
    }
    block_of(args.block_size, "--block-size")
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    if let Some(bytes) = args.again {
        return again::run(args, bytes);
    }
    let block = check(args)?;
    // The entries of memory with copies are at its home; those of the other shall be there, too.
    let spec = RackSpec { nodes: 3, copies: 2, directory: Directory::Home, ..spec(block) };
    let interrupt = Interrupt::listen()?;
    let mut rack = Nodes::<Keeper>::start(args.transport, &spec, &(), &interrupt)?;
    let regions: [u64; 2] = [
        rack.ask(1, Order::AllocatePlain { bytes: BLOCKS * block.bytes() })?,
        rack.ask(1, Order::Allocate { bytes: BLOCKS * block.bytes(), near: HOME.0 })?,
    ];
    let locks: [u64; 2] =
        [rack.ask(1, Order::MakeLock { copies: false })?, rack.ask(1, Order::MakeLock { copies: true })?];
    let mut counted = 0;
    let mut all: [[Rounds; 5]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| Rounds::new()));
    for round in 0..=args.rounds {
        for (with_copies, (region, lock)) in [false, true].into_iter().zip(regions.into_iter().zip(locks)) {
            let mut measured = Measured::default();
            for turn in 0..BLOCKS / 2 {
                for node in [0, 1] {
                    let value = counted + 4 * turn + 2 * node as u64 + 1;
                    measured.lock.push(rack.ask(node, Order::Lock { lock, value })?);
                    measured.lock_again.push(rack.ask(node, Order::Lock { lock, value: value + 1 })?);
                }
            }
            for at in 0..BLOCKS {
                let (block, value) = (region + at * block.bytes(), 2 * round + 1);
                let write = |value, sync| Order::Write { block, value, sync };
                // Node 0 has read it: the write takes its copy away, and what follows does not.
                measured.write.push(rack.ask(1, write(value, with_copies))?);
                measured.write_again.push(rack.ask(1, write(value + 1, with_copies))?);
                rack.ask::<Samples>(1, write(value + 2, false))?;
                measured.read.push(rack.ask(0, Order::Read { block, value: value + 2 })?);
            }
            // The first round warms up.
            if round > 0 {
                let Measured { write, write_again, read, lock, lock_again } = measured;
                let kinds = [write, write_again, read, lock, lock_again];
                for (rounds, samples) in all[usize::from(with_copies)].iter_mut().zip(kinds) {
                    samples.iter().for_each(|samples| rounds.add(samples));
                }
            }
        }
        counted += 2 * BLOCKS;
    }
    let [[write, again, read, lock, lock_again], [synced, synced_again, read_copied, safe, safe_again]] =
        &all;
    let against = Some(read.median());
    let figures = vec![
        Figure::of(read, "read of a block modified elsewhere", None),
        Figure::of(read_copied, "the same with 2 copies", against),
        Figure::of(write, "write of a block that another node has read", against),
        Figure::of(synced, "the same with 2 copies, and sync", against),
        Figure::of(again, "write of a block of one's own", against),
        Figure::of(synced_again, "the same with 2 copies, and sync", against),
        Figure::of(lock, "taking a lock that another node wrote last", against),
        Figure::of(safe, "the same with 2 copies", against),
        Figure::of(lock_again, "taking it once more", against),
        Figure::of(safe_again, "the same with 2 copies", against),
    ];
    let report = Report {
        transport: args.transport,
        block_size: args.block_size,
        rounds: args.rounds,
        most_ratio_of_put_and_sync: figures[2].ratio + ROUND_TRIP,
        met: figures[3].ratio <= figures[2].ratio + ROUND_TRIP,
        figures,
    };
    output::show(args.json, "bench copies", &report, || text(&report))
}

fn text(report: &Report) -> String {
    let rows: Vec<Vec<String>> = report.figures.iter().map(Figure::cells).collect();
    format!(
        "Blocks of {} over {}: node 1 writes, node 0 reads, node 2 is their home; copies are on nodes 2 and 0\n\
         A lock over {}, which both write\n\n{}\n\
         target: a write of a block that another node has read, and sync, at most {:.2}x: such a write and a round trip, which is two\n         \
         messages of the three of the first row: {}\n",
        report.block_size,
        report.transport.name(),
        Bytes(LOCKED as u64),
        table(&["", "median", "against the first", "p50", "p99", "p99.9"], &rows),
        report.most_ratio_of_put_and_sync,
        if report.met { "met" } else { "not met" },
    )
}
