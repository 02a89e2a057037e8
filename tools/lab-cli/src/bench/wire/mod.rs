//! `rackmem-lab bench wire`: what it is worth that the switch's programs run in the kernel, at the ports.
//!
//! Racks over cables between network namespaces, in turns. In both arms of the first table everything is the same but for where
//! the switch's programs run. In the second the directory is in the switch, in the kernel, or at the homes; some nodes have the
//! memory, and others use it.
//!
//! | file | holds |
//! | --- | --- |
//! | `apart` | nodes that have memory, and nodes that use it |
//! | `figures` | the same as charts, in the axes of Concordia's Figures 9, 10 and 11 |
//! | `mixes` | YCSB's mixes, beside a Redis that is asked through the same ports |
//! | `node` | a node that has memory, or uses it |
//! | `report` | what comes out |

mod apart;
mod figures;
mod mixes;
mod node;
mod report;

pub(crate) use node::User;

use std::path::PathBuf;

use rackmem::BlockSize;

use self::apart::{Load, Racks};
use self::report::{Apart, BareFigures, Passing, Takes, WireReport};
use super::bare::Bare;
use super::lock::{BenchLock, Locks};
use super::miss::Misses;
use super::nodes::spec;
use super::rounds::{Against, Pair};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::taken::Taken;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Rounds in which the racks take turns; the medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,

    /// Per cent of accesses that are to memory which all users share
    #[arg(long, value_delimiter = ',', default_value = "20,60,100", value_parser = clap::value_parser!(u64).range(0..=100))]
    sharing: Vec<u64>,

    /// Milliseconds in which memory is used, in each round
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    millis: u64,

    /// Measure only what Concordia's Figures 9, 10 and 11 show, and write data and drawings there
    #[arg(long, value_name = "DIR", conflicts_with_all = ["sharing", "records", "operations"])]
    figures: Option<PathBuf>,

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
/// In the kernel, in the drivers of the ports, and at the traffic control.
const HOOKS: [TransportKind; 2] = [TransportKind::WireXdp, TransportKind::Wire];
/// Rounds that are over in milliseconds are so many times more.
const SHORTER: u64 = 12;
/// Packets of a flood.
const FLOOD: u64 = 64 << 10;
/// Bytes of a stream beside the rack.
const STREAM: u64 = 64 << 20;

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    let interrupt = Interrupt::listen()?;
    if let Some(folder) = &args.figures {
        return figures::write(args, folder, &interrupt);
    }
    let report = WireReport {
        rounds: args.rounds,
        millis: args.millis,
        passing: passing(ARMS, args, &interrupt)?,
        in_drivers: passing(HOOKS, args, &interrupt)?,
        apart: apart(args, &interrupt)?,
        mixes: mixes::measure(args, &interrupt)?,
    };
    output::show(args.json, "bench wire", &report, || report.text())
}

/// What rounds of something have come to in both arms.
struct Pairs<const N: usize>([Vec<Pair>; N]);

impl<const N: usize> Default for Pairs<N> {
    fn default() -> Self {
        Self([const { Vec::new() }; N])
    }
}

impl<const N: usize> Pairs<N> {
    /// More rounds, in turns. The first warms up.
    fn more<A>(
        &mut self,
        rounds: u64,
        interrupt: &Interrupt,
        [measured, yardstick]: &mut [A; 2],
        mut once: impl FnMut(&mut A, u64) -> Result<[f64; N], Fault>,
    ) -> Result<(), Fault> {
        for round in 0..=rounds {
            let (measured, yardstick) = (once(measured, round)?, once(yardstick, round)?);
            if round > 0 {
                let both = yardstick.into_iter().zip(measured);
                self.0.iter_mut().zip(both).for_each(|(pairs, (of, is))| pairs.push(Pair(of, is)));
            }
            if interrupt.requested() {
                return Err(Fault::Interrupted);
            }
        }
        Ok(())
    }

    fn against(&self) -> [Against; N] {
        self.0.each_ref().map(|pairs| Against::of(pairs))
    }
}

/// Rounds of something in both arms, in turns.
fn in_turns<A, const N: usize>(
    rounds: u64,
    interrupt: &Interrupt,
    arms: &mut [A; 2],
    once: impl FnMut(&mut A, u64) -> Result<[f64; N], Fault>,
) -> Result<[Against; N], Fault> {
    let mut pairs = Pairs::default();
    pairs.more(rounds, interrupt, arms, once)?;
    Ok(pairs.against())
}

/// A rate, and what one of so many took of the machine.
fn rate_and_taken(rate: f64, times: f64, taken: Option<Taken>) -> Result<[f64; 5], Fault> {
    let taken = taken.ok_or_else(|| Fault::failed("the kernel does not say what processes have taken"))?;
    let Taken { datagrams, processor_ns, switches, interrupts } = taken;
    let [datagrams, processor_ns, switches, interrupts] =
        [datagrams, processor_ns, switches, interrupts].map(|count| count as f64 / times);
    Ok([rate, datagrams, processor_ns, switches, interrupts])
}

/// One of each, for both arms.
fn both<A>(
    arms: [TransportKind; 2],
    make: impl FnMut(TransportKind) -> Result<A, Fault>,
) -> Result<[A; 2], Fault> {
    let [measured, yardstick] = arms.map(make);
    Ok([measured?, yardstick?])
}

/// What passes the switch, in two arms. In each round the racks are others: where the kernel has put the threads of one stays with it,
/// and is luck.
fn passing(arms: [TransportKind; 2], args: &Args, interrupt: &Interrupt) -> Result<Passing, Fault> {
    let mut bare = BarePairs::default();
    let (mut miss, mut hand_over) = (Pairs::default(), Pairs::default());
    for _ in 0..args.rounds {
        bare.more(arms, interrupt)?;
        misses(&mut miss, arms, interrupt)?;
        hand_overs(&mut hand_over, arms, interrupt)?;
    }
    let ([miss], [hand_over]) = (miss.against(), hand_over.against());
    Ok(Passing { bare: bare.figures(), miss, hand_over })
}

/// Three messages of which the second goes on at the switch, and floods of the first; two that are forwarded alone, and a stream that
/// is. A process sends on what comes, with the same tags, and knows nothing of a rack.
#[derive(Default)]
struct BarePairs {
    of_three: Pairs<1>,
    of_two: Pairs<1>,
    flood: Pairs<5>,
    stream: Pairs<1>,
}

impl BarePairs {
    fn more(&mut self, arms: [TransportKind; 2], interrupt: &Interrupt) -> Result<(), Fault> {
        let mut arms = both(arms, |arm| Bare::across(arm, BlockSize::DEFAULT, interrupt))?;
        self.of_three
            .more(SHORTER, interrupt, &mut arms, |arm, _| Ok([arm.exchange(super::miss::BLOCKS)?.mean()]))?;
        self.of_two.more(SHORTER, interrupt, &mut arms, |arm, _| {
            Ok([arm.exchange_of_two(super::miss::BLOCKS)?.mean()])
        })?;
        self.flood.more(1, interrupt, &mut arms, |arm, _| {
            let before = arm.taken();
            let rate = arm.flood(FLOOD)?;
            let taken = arm.taken().zip(before).map(|(after, before)| after.since(before));
            rate_and_taken(rate, 2.0 * FLOOD as f64, taken)
        })?;
        self.stream.more(SHORTER, interrupt, &mut arms, |arm, _| Ok([arm.stream(STREAM)?]))
    }

    fn figures(&self) -> BareFigures {
        let ([of_three], [of_two], [stream]) =
            (self.of_three.against(), self.of_two.against(), self.stream.against());
        let [flood, flood_takes @ ..] = self.flood.against();
        let (forwarded_ns, flood_takes) = (of_two.yardstick, Takes::of(flood_takes));
        BareFigures { of_three, forwarded_ns, stream, flood, flood_takes }
    }
}

fn misses(pairs: &mut Pairs<1>, arms: [TransportKind; 2], interrupt: &Interrupt) -> Result<(), Fault> {
    let spec = spec(BlockSize::DEFAULT);
    let mut arms = both(arms, |arm| {
        let mut rack = Misses::over(arm, &spec, interrupt)?;
        let region = rack.allocate()?;
        Ok((rack, region))
    })?;
    pairs.more(SHORTER, interrupt, &mut arms, |(rack, region), round| {
        Ok([rack.read_modified(*region, round)?.mean()])
    })
}

fn hand_overs(pairs: &mut Pairs<1>, arms: [TransportKind; 2], interrupt: &Interrupt) -> Result<(), Fault> {
    /// Locks on each node.
    const LOCKS: u64 = 48;
    let mut arms = both(arms, |arm| Locks::of_two(arm, LOCKS, interrupt))?;
    pairs.more(SHORTER, interrupt, &mut arms, |rack, _| {
        Ok([rack.hand_overs(BenchLock::Carried, 2 * LOCKS)?.mean()])
    })?;
    arms.iter_mut().try_for_each(|rack| rack.check(BenchLock::Carried, 4 * LOCKS * (SHORTER + 1)))
}

/// The directory in the switch, and at the homes.
fn apart(args: &Args, interrupt: &Interrupt) -> Result<Vec<Apart>, Fault> {
    let mut racks = Racks::start(interrupt)?;
    args.sharing.iter().map(|sharing| racks.measure(args, Load::half(*sharing), interrupt)).collect()
}
