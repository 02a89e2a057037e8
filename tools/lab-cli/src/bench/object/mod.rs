//! `rackmem-lab bench object`: reads of whole objects, beside what other systems do for one, in the same run.
//!
//! Node 1 is home to some objects in each layout, and its threads write them all the time; one thread of node 0 reads. Where the
//! objects are within reach of loads and stores that is all there is; otherwise each read is asked of the home's NIC.
//!
//! | file | holds |
//! | --- | --- |
//! | `node` | what readers and writers do |
//! | `report` | what comes out, beside the targets |

mod node;
mod report;

pub(crate) use node::Objects;

use rackmem::BlockSize;

use self::node::{Found, Made, Mode, ObjectLayout, Order};
use self::report::{ObjectBenchReport, Point};
use super::bare::Bare;
use super::nodes::{Nodes, spec};
use super::samples::Recorder;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Bytes of an object
    #[arg(long, value_delimiter = ',', default_value = "128,1KiB,8KiB")]
    sizes: Vec<Bytes>,

    /// Threads at the home that write all the time, each its own objects
    #[arg(long, value_delimiter = ',', default_value = "0,1,2,4,8,16", value_parser = clap::value_parser!(u16).range(0..=64))]
    writers: Vec<u16>,

    /// Objects of each size and layout
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    objects: u64,

    /// What carries the messages
    #[arg(long, value_enum, default_value = "inline")]
    transport: TransportKind,

    /// Milliseconds per measurement
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    millis: u64,

    /// Rounds, in each of which all layouts take turns; the medians are printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

const SMALLEST: u64 = 8;
const LARGEST: u64 = 1 << 20;
/// All objects of all layouts together.
const MOST_MEMORY: u64 = 1 << 30;

impl Args {
    fn check(&self) -> Result<(), Fault> {
        for size in &self.sizes {
            if !(SMALLEST..=LARGEST).contains(&size.0) {
                return Err(Fault::usage(format_args!("--sizes {size} is not between 8 B and 1 MiB")));
            }
        }
        if let Some(writers) = self.writers.iter().find(|writers| u64::from(**writers) > self.objects) {
            return Err(Fault::usage(format_args!(
                "--writers {writers} is more than --objects {}: each writes objects of its own",
                self.objects
            )));
        }
        if self.bytes() > MOST_MEMORY {
            return Err(Fault::usage("--sizes and --objects together are more than 1 GiB"));
        }
        Ok(())
    }

    /// What all layouts of all sizes take, at most.
    fn bytes(&self) -> u64 {
        let each =
            |size: &Bytes| self.objects.saturating_mul(size.0 * 5 / 4 + 256) * ObjectLayout::ALL.len() as u64;
        self.sizes.iter().map(each).fold(0, u64::saturating_add)
    }

    fn spec(&self) -> RackSpec {
        RackSpec {
            cache: 16 << 20,
            memory: (2 * self.bytes()).next_power_of_two().max(64 << 20),
            ..spec(BlockSize::DEFAULT)
        }
    }
}

/// Who reads.
const READER: u16 = 0;
/// Who writes, and has the objects.
const HOME: u16 = 1;

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    args.check()?;
    let interrupt = Interrupt::listen()?;
    let bare = bare(args, &interrupt)?;
    let mut rack = Nodes::<Objects>::start(args.transport, &args.spec(), &(), &interrupt)?;
    let modes = Mode::of(args.transport);
    let mut points = Vec::new();
    for size in &args.sizes {
        let mut make = |kind| rack.ask(HOME, Order::Make { kind, bytes: size.0, objects: args.objects });
        let made: Vec<Made> = ObjectLayout::ALL.into_iter().map(&mut make).collect::<Result<_, _>>()?;
        for writers in &args.writers {
            let mut rounds: Vec<Vec<Vec<Found>>> = Vec::new();
            for _ in 0..args.rounds {
                let mut of_kinds = Vec::new();
                for made in &made {
                    rack.ask::<()>(HOME, Order::Write(*made, *writers))?;
                    let mut read = |mode: &Mode| rack.ask(READER, Order::Read(*made, *mode, args.millis));
                    let found = modes.iter().map(&mut read).collect::<Result<_, _>>();
                    rack.ask::<()>(HOME, Order::Stop)?;
                    of_kinds.push(found?);
                    if interrupt.requested() {
                        return Err(Fault::Interrupted);
                    }
                }
                rounds.push(of_kinds);
            }
            points.push(Point::of(size.0, *writers, &rounds)?);
        }
    }
    let report = ObjectBenchReport {
        transport: args.transport,
        objects: args.objects,
        millis: args.millis,
        rounds: args.rounds,
        bare,
        targets: report::targets(&points),
        points,
    };
    output::show(args.json, "bench object", &report, || report.text())
}

/// Exchanges of two messages in each round.
const EXCHANGES: u64 = 500;

/// What a request and an answer of the same bytes take, and nothing else; where reads are that.
fn bare(args: &Args, interrupt: &Interrupt) -> Result<Vec<report::Bare>, Fault> {
    let mut all = Vec::new();
    if args.transport != TransportKind::Udp {
        return Ok(all);
    }
    for size in &args.sizes {
        let Some(block) = BlockSize::new(size.0) else { continue };
        let mut bare = Bare::start(args.transport, block, interrupt)?;
        let mut times = Recorder::new();
        // The first round warms up.
        for round in 0..=args.rounds {
            let samples = bare.exchange_of_two(EXCHANGES)?;
            if round > 0 {
                times.add(&samples);
            }
        }
        all.push(report::Bare { bytes: size.0, p50_ns: times.quantile(0.5) });
    }
    Ok(all)
}
