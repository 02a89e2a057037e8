//! A node dies for good, and what it kept is copied to another one: how long that takes, and what goes on meanwhile.
//!
//! Node 0 serves a memory, and node 1 has the other copy. When node 0 is killed, node 2 gets it from node 1. Meanwhile nodes 1 and 2 work
//! on other memory with copies, which both of them keep: a thread on each reads and writes words in blocks of it at random, mostly in
//! those that the other one uses less. With `--chains`, nodes 0 and 1 have a store's memory, and nodes 1 and 2 get and put in that store.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::keeper::{Keeper, Looked, Order};
use super::{Args, check};
use crate::bench::nodes::{Nodes, available, spec};
use crate::bench::rounds::table;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;
use cli::ycsb::Directory;
use cli::ycsb::progress::Progress;

/// What dies, and those who go on.
const DIES: u16 = 0;
const GO_ON: [u16; 2] = [1, 2];
/// The one that gets the copy.
const GETS: u16 = 2;
/// Bytes that a value of a store takes.
const SLOT: u64 = 1 << 10;
/// Written at a time.
const PIECE: u64 = 1 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The memory has room for this, too.
const ROOM: u64 = 64 << 20;
/// Bytes a second, at least: a GiB in a minute. And of the work, at least.
const LEAST_RATE: f64 = (1 << 30) as f64 / 60.0;
const LEAST_WORK: f64 = 0.8;

/// Operations a second.
#[derive(Debug, Serialize)]
struct Work {
    before: f64,
    meanwhile: f64,
    after: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    transport: TransportKind,
    block_size: Bytes,
    bytes: Bytes,
    of_chains: bool,
    /// From the kill until the first block came: most of it is the timeout.
    begun_after_ns: u64,
    took_ns: u64,
    bytes_per_second: f64,
    work: Work,
    /// Of the work meanwhile and after.
    ratio: f64,
    least_ratio: f64,
    least_bytes_per_second: f64,
    met: bool,
}

/// What was done by when.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    operations: u64,
    copied: u64,
    /// Copies of a store.
    missing: u64,
}

impl Mark {
    fn now(rack: &mut Nodes<Keeper>) -> Result<Self, Fault> {
        let looked: Vec<Looked> = rack.ask_each(GO_ON.map(|node| (node, Order::Look)))?;
        let refilled =
            GO_ON.iter().zip(&looked).find(|(node, _)| **node == GETS).map_or(0, |(_, it)| it.refilled);
        let sum = |of: fn(&Looked) -> u64| looked.iter().map(of).sum::<u64>();
        let (operations, missing) = (sum(|it| it.operations), sum(|it| it.missing));
        Ok(Self { at: Instant::now(), operations, copied: refilled + sum(|it| it.recopied), missing })
    }

    fn rate(self, until: Self) -> f64 {
        (until.operations - self.operations) as f64 / (until.at - self.at).as_secs_f64()
    }
}

/// Looks until this holds.
fn until(
    rack: &mut Nodes<Keeper>,
    interrupt: &Interrupt,
    mut done: impl FnMut(Mark) -> bool,
) -> Result<Mark, Fault> {
    loop {
        let mark = Mark::now(rack)?;
        if done(mark) {
            return Ok(mark);
        }
        if interrupt.requested() {
            return Err(Fault::Interrupted);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Runs `bench copies --again`.
pub(super) fn run(args: &Args, bytes: Bytes) -> Result<(), Fault> {
    let block = check(args)?;
    if bytes.0 == 0 {
        return Err(Fault::usage("--again 0: there is nothing to be copied; ask for 1 MiB or more"));
    }
    let whole = bytes.0.next_multiple_of(PIECE);
    // Node 0's copy, node 1's and node 2's.
    let memory = whole + ROOM + if args.chains { whole / 2 } else { 0 };
    let needed = 3 * memory;
    if let Some(available) = available().filter(|available| *available < needed) {
        let (needed, available) = (Bytes(needed), Bytes(available));
        return Err(Fault::usage(format_args!(
            "--again {bytes} takes {needed}, and this machine has {available}"
        )));
    }
    let base = spec(block);
    let spec = RackSpec { nodes: 3, copies: 2, directory: Directory::Home, memory, ..base };
    let interrupt = Interrupt::listen()?;
    let mut rack = Nodes::<Keeper>::start(args.transport, &spec, &(), &interrupt)?;
    let make = if args.chains {
        // Room for what is written while what was overwritten rests.
        Order::MakeStore { at: [DIES, 1], bytes: (whole + whole / 4 + ROOM / 2) / 2 }
    } else {
        Order::Allocate { bytes: whole, near: DIES }
    };
    let region: u64 = rack.ask(1, make)?;
    let (mut progress, began) = (Progress::start("bytes written".to_owned(), whole), Instant::now());
    for from in (0..whole).step_by(PIECE as usize) {
        let keys = from / SLOT..(from + PIECE) / SLOT;
        rack.ask::<()>(
            1,
            if args.chains {
                Order::Put { store: region, keys }
            } else {
                Order::Fill { from: region + from, bytes: PIECE }
            },
        )?;
        progress.show(from + PIECE);
        if interrupt.requested() {
            return Err(Fault::Interrupted);
        }
    }
    progress.finish(whole, began.elapsed());
    let work = if args.chains {
        Order::WorkOnStore { store: region, keys: whole / SLOT }
    } else {
        let words: u64 = rack.ask(1, Order::Allocate { bytes: 256 * block.bytes(), near: 1 })?;
        Order::Work { region: words, blocks: 256 }
    };
    let _: Vec<()> = rack.ask_each(GO_ON.map(|node| (node, work.clone())))?;
    let measure = |rack: &mut Nodes<Keeper>| {
        thread::sleep(Duration::from_secs(1));
        let from = Mark::now(rack)?;
        let to = until(rack, &interrupt, |mark| (mark.at - from.at).as_secs() >= args.seconds)?;
        Ok::<_, Fault>(from.rate(to))
    };
    let before = measure(&mut rack)?;
    let killed = Instant::now();
    rack.kill(DIES);
    let begun = until(&mut rack, &interrupt, |mark| mark.copied > 0)?;
    let mut progress = Progress::start("bytes copied".to_owned(), whole);
    let done = until(&mut rack, &interrupt, |mark| {
        progress.show(mark.copied.min(whole));
        if args.chains { mark.missing == 0 } else { mark.copied >= whole }
    })?;
    progress.finish(whole, done.at - begun.at);
    let after = measure(&mut rack)?;
    let took = done.at - begun.at;
    let (meanwhile, rate) = (begun.rate(done), (done.copied - begun.copied) as f64 / took.as_secs_f64());
    let nanos = |it: Duration| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX);
    let ratio = meanwhile / after;
    let report = Report {
        transport: args.transport,
        block_size: args.block_size,
        bytes: Bytes(whole),
        of_chains: args.chains,
        begun_after_ns: nanos(begun.at - killed),
        took_ns: nanos(took),
        bytes_per_second: rate,
        work: Work { before, meanwhile, after },
        ratio,
        least_ratio: LEAST_WORK,
        least_bytes_per_second: LEAST_RATE,
        met: rate >= LEAST_RATE && ratio >= LEAST_WORK,
    };
    output::show(args.json, "bench copies", &report, || text(&report))
}

fn text(report: &Report) -> String {
    let work = &report.work;
    let row = |when: &str, rate: f64| {
        vec![when.to_owned(), format!("{rate:.0}"), format!("{:.2}x", rate / work.after)]
    };
    let rows = [
        row("before a node dies", work.before),
        row("while it is copied", work.meanwhile),
        row("afterwards", work.after),
    ];
    let (what, on) = if report.of_chains {
        ("a store of chains".to_owned(), "it, with as many gets as puts of any key")
    } else {
        (format!("blocks of {}", report.block_size), "other memory with copies")
    };
    format!(
        "{} in {what} over {}: node 0 dies, and node 2 gets from node 1 what it had; both work on {on}\n\n\
         begun {:.2} s after the kill, done in {:.2} s: {}/s\n\n{}\n\
         target: at least {}/s (1 GiB in a minute), and {:.2}x of the work afterwards: {}\n",
        report.bytes,
        report.transport.name(),
        report.begun_after_ns as f64 / 1e9,
        report.took_ns as f64 / 1e9,
        Bytes(report.bytes_per_second as u64),
        table(&["work", "operations/s", "of afterwards"], &rows),
        Bytes(report.least_bytes_per_second as u64),
        report.least_ratio,
        if report.met { "met" } else { "not met" },
    )
}
