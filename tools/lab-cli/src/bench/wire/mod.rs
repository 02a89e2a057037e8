//! `rackmem-lab bench wire`: what it is worth that the switch's programs run in the kernel, at the ports.
//!
//! Racks over cables between network namespaces, in turns. In both arms of the first table everything is the same but for where
//! the switch's programs run. In the second the directory is in the switch, in the kernel, or at the homes; some nodes have the
//! memory, and others use it.
//!
//! | file | holds |
//! | --- | --- |
//! | `mixes` | YCSB's mixes, beside a Redis that is asked through the same ports |
//! | `node` | a node that has memory, or uses it |
//! | `report` | what comes out |

mod mixes;
mod node;
mod report;

pub(crate) use node::User;

use rackmem::BlockSize;

use self::node::{Order, Taken, Use};
use self::report::{Apart, BareFigures, WireReport};
use super::bare::Bare;
use super::lock::{BenchLock, Locks};
use super::miss::Misses;
use super::nodes::{Nodes, spec};
use super::rounds::{Against, Pair};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::ycsb::Directory;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Rounds in which the racks take turns; the medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(3..=1000))]
    rounds: u64,

    /// Per cent of accesses that are to memory which all users share
    #[arg(long, value_delimiter = ',', default_value = "20,60,100", value_parser = clap::value_parser!(u64).range(0..=100))]
    sharing: Vec<u64>,

    /// Milliseconds in which memory is used, in each round
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    millis: u64,

    /// Records of YCSB's mixes
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    records: u64,

    /// Operations of each mix in each round, ten times as many where nothing is written
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    operations: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The programs in the kernel, and in the switch's process.
const ARMS: [TransportKind; 2] = [TransportKind::Wire, TransportKind::WireProcess];
/// Nodes that have the memory, and nodes that use it.
const HOMES: u16 = 2;
const USERS: u16 = 2;
/// Packets of a flood.
const FLOOD: u64 = 64 << 10;
/// Blocks of each region: few enough to be cached whole.
const REGION: u64 = 128;

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    let interrupt = Interrupt::listen()?;
    let report = WireReport {
        rounds: args.rounds,
        millis: args.millis,
        bare: bare(args, &interrupt)?,
        miss: misses(args, &interrupt)?,
        hand_over: hand_overs(args, &interrupt)?,
        apart: apart(args, &interrupt)?,
        mixes: mixes::measure(args, &interrupt)?,
    };
    output::show(args.json, "bench wire", &report, || report.text())
}

/// Rounds of something in both arms, in turns. The first warms up.
fn in_turns<A>(
    args: &Args,
    interrupt: &Interrupt,
    arms: &mut [A; 2],
    mut once: impl FnMut(&mut A, u64) -> Result<f64, Fault>,
) -> Result<Against, Fault> {
    let [kernel, process] = arms;
    let mut pairs = Vec::new();
    for round in 0..=args.rounds {
        let (measured, yardstick) = (once(kernel, round)?, once(process, round)?);
        if round > 0 {
            pairs.push(Pair(yardstick, measured));
        }
        if interrupt.requested() {
            return Err(Fault::Interrupted);
        }
    }
    Ok(Against::of(&pairs))
}

/// One of each, for both arms.
fn both<A>(mut make: impl FnMut(TransportKind) -> Result<A, Fault>) -> Result<[A; 2], Fault> {
    let [kernel, process] = ARMS.map(&mut make);
    Ok([kernel?, process?])
}

/// Three messages of which the second goes on at the switch, and floods of the first; and two that are forwarded alone. The
/// process of the other arm sends on what comes, with the same tags, and knows nothing of a rack.
fn bare(args: &Args, interrupt: &Interrupt) -> Result<BareFigures, Fault> {
    let block = BlockSize::DEFAULT;
    let mut arms = both(|arm| Bare::across(arm, block, interrupt))?;
    let of_three =
        in_turns(args, interrupt, &mut arms, |arm, _| Ok(arm.exchange(super::miss::BLOCKS)?.mean()))?;
    let of_two =
        in_turns(args, interrupt, &mut arms, |arm, _| Ok(arm.exchange_of_two(super::miss::BLOCKS)?.mean()))?;
    let flood = in_turns(args, interrupt, &mut arms, |arm, _| arm.flood(FLOOD))?;
    Ok(BareFigures { of_three, forwarded_ns: of_two.yardstick, flood })
}

fn misses(args: &Args, interrupt: &Interrupt) -> Result<Against, Fault> {
    let spec = spec(BlockSize::DEFAULT);
    let mut arms = both(|arm| {
        let mut rack = Misses::over(arm, &spec, interrupt)?;
        let region = rack.allocate()?;
        Ok((rack, region))
    })?;
    in_turns(args, interrupt, &mut arms, |(rack, region), round| {
        Ok(rack.read_modified(*region, round)?.mean())
    })
}

fn hand_overs(args: &Args, interrupt: &Interrupt) -> Result<Against, Fault> {
    /// Locks on each node.
    const LOCKS: u64 = 48;
    let mut arms = both(|arm| Locks::of_two(arm, LOCKS, interrupt))?;
    let against = in_turns(args, interrupt, &mut arms, |rack, _| {
        Ok(rack.hand_overs(BenchLock::Carried, 2 * LOCKS)?.mean())
    })?;
    for rack in &mut arms {
        rack.check(BenchLock::Carried, 4 * LOCKS * (args.rounds + 1))?;
    }
    Ok(against)
}

/// A rack whose memory is at nodes that use none.
struct Racks {
    nodes: Nodes<User>,
    shared: Vec<u64>,
    own: Vec<Vec<u64>>,
}

impl Racks {
    fn start(directory: Directory, interrupt: &Interrupt) -> Result<Self, Fault> {
        let spec = RackSpec { nodes: usize::from(HOMES + USERS), directory, ..spec(BlockSize::DEFAULT) };
        let mut nodes = Nodes::start(TransportKind::Wire, &spec, &(), interrupt)?;
        let mut region = || nodes.ask_each((0..HOMES).map(|home| (home, Order::Allocate(REGION))));
        let (shared, own) = (region()?, (0..USERS).map(|_| region()).collect::<Result<_, _>>()?);
        Ok(Self { nodes, shared, own })
    }

    /// Operations a second, and what the homes have taken for one.
    fn use_for_a_while(&mut self, args: &Args, sharing: u64, seed: u64) -> Result<[f64; 3], Fault> {
        let users: Vec<(u16, Order)> = (0..USERS)
            .zip(&self.own)
            .map(|(user, own)| {
                let (shared, own) = (self.shared.clone(), own.clone());
                let seed = seed * u64::from(USERS) + u64::from(user);
                let how = Use { shared, own, blocks: REGION, sharing, millis: args.millis, seed };
                (HOMES + user, Order::Use(how))
            })
            .collect();
        let before = self.taken()?;
        let rates: Vec<f64> = self.nodes.ask_each(users)?;
        let taken = self.taken()?.since(before);
        let rate: f64 = rates.into_iter().sum();
        let operations = rate * args.millis as f64 / 1e3;
        Ok([rate, taken.messages as f64 / operations, taken.processor_ns as f64 / operations])
    }

    fn taken(&mut self) -> Result<Taken, Fault> {
        let homes: Vec<Taken> = self.nodes.ask_each((0..HOMES).map(|home| (home, Order::Tell)))?;
        Ok(homes.into_iter().fold(Taken::default(), Taken::and))
    }
}

/// The directory in the switch, and at the homes.
fn apart(args: &Args, interrupt: &Interrupt) -> Result<Vec<Apart>, Fault> {
    let mut switch = Racks::start(Directory::Switch, interrupt)?;
    let mut home = Racks::start(Directory::Home, interrupt)?;
    let mut all = Vec::new();
    for sharing in &args.sharing {
        let mut pairs: [Vec<Pair>; 3] = Default::default();
        for round in 0..=args.rounds {
            let measured = switch.use_for_a_while(args, *sharing, round)?;
            let yardstick = home.use_for_a_while(args, *sharing, round)?;
            if round > 0 {
                let both = yardstick.into_iter().zip(measured);
                pairs.iter_mut().zip(both).for_each(|(pairs, (of, is))| pairs.push(Pair(of, is)));
            }
            if interrupt.requested() {
                return Err(Fault::Interrupted);
            }
        }
        let [rate, messages, processor_ns] = pairs.map(|pairs| Against::of(&pairs));
        all.push(Apart { sharing: *sharing, rate, messages, processor_ns });
    }
    Ok(all)
}
