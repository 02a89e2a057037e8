//! What pointers wait for when the page is not there, against what calls wait for when the block is not, and bare faults.

use serde::Serialize;

use super::bare::Samples as Bare;
use super::node::{InWhich, Order};
use super::start;
use crate::bench::miss::{Args, BLOCKS};
use crate::bench::pingpong::{block_of, micros};
use crate::bench::rounds::{Against, Pair, median, table};
use crate::bench::samples::Samples;
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::size::Bytes;

/// A fault may take so much of a bare one beside the miss of a call.
const MOST_OF_BARE: f64 = 1.3;
/// Pages in a row, and what one of them may take of a single one.
const IN_A_ROW: u64 = 64;
const MOST_IN_A_ROW: f64 = 0.3;
/// Threads that access pages at once.
const THREADS: usize = 4;
/// An agent's revocation, against the kernel's part of it.
const MOST_REVOCATION: f64 = 1.3;

#[derive(Debug, Serialize)]
struct Report {
    block_size: Bytes,
    rounds: u64,
    ways: Vec<Way>,
}

/// With faults resolved by a thread of the node, or in place.
#[derive(Debug, Serialize)]
struct Way {
    in_place: bool,
    /// Nanoseconds of a load that a bare fault delays.
    bare_fault_ns: f64,
    /// Of a call that reads what another node has modified.
    miss_ns: f64,
    /// Of a load of the same.
    fault_ns: f64,
    /// What the fault takes beyond the miss, in bare faults.
    beyond_miss_ratio: f64,
    /// One of 64 in a row, against a single one.
    in_a_row: Against,
    /// One of 64, of several threads, against one of one thread.
    at_once: Against,
    /// A revocation by an agent, against the kernel's part.
    revocation: Against,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Fault> {
    let interrupt = Interrupt::listen()?;
    let ways: Result<_, Fault> =
        [false, true].into_iter().map(|in_place| measure(args, in_place, &interrupt)).collect();
    let report = Report { block_size: args.block_size, rounds: args.rounds, ways: ways? };
    output::show(args.json, "bench miss --mapped", &report, || {
        let rows: Vec<_> = report.ways.iter().flat_map(rows).collect();
        format!(
            "Accesses through pointers to {} blocks that are not there, between processes (medians of {} rounds)\n\n{}",
            args.block_size,
            args.rounds,
            table(&["faults resolved", "access", "takes", "against", "ratio", "target at most", ""], &rows)
        )
    })
}

fn measure(args: &Args, in_place: bool, interrupt: &Interrupt) -> Result<Way, Fault> {
    let block = block_of(args.block_size, "--block-size")?;
    let mut nodes = start(block, 8 * IN_A_ROW * block.bytes(), in_place, interrupt)?;
    let region: u64 = nodes.ask(0, Order::Allocate(IN_A_ROW))?;
    let called: u64 = nodes.ask(0, Order::Allocate(BLOCKS))?;
    nodes.ask_all::<()>(&Order::Map { addr: region, blocks: IN_A_ROW })?;
    let (mut bares, mut misses, mut faults, mut beyond) = (vec![], vec![], vec![], vec![]);
    let (mut rows, mut at_onces, mut revocations) = (vec![], vec![], vec![]);
    for round in 0..=args.rounds {
        let mut value = round * 4 + 1;
        let bare: Bare = nodes.ask(0, Order::Bare { blocks: BLOCKS, in_place })?;
        nodes.ask::<()>(1, Order::Write { addr: called, blocks: BLOCKS, value })?;
        let miss: Samples = nodes.ask(0, Order::Read { addr: called, blocks: BLOCKS, value })?;
        let [single, row, at_once] = [InWhich::Random, InWhich::Row, InWhich::AtOnce(THREADS)].map(|how| {
            value += 1;
            nodes.ask::<()>(1, Order::Store(value))?;
            nodes.ask::<f64>(0, Order::Load { value, how })
        });
        let (single, row, at_once) = (single?, row?, at_once?);
        if round == 0 {
            continue;
        }
        bares.push(bare.fault.mean());
        misses.push(miss.mean());
        faults.push(single);
        beyond.push((single - miss.mean()) / bare.fault.mean());
        rows.push(Pair(single, row));
        at_onces.push(Pair(single, at_once));
        revocations.push(Pair(bare.kernel_revokes_ns, bare.agent_revokes_ns));
    }
    Ok(Way {
        in_place,
        bare_fault_ns: median(bares),
        miss_ns: median(misses),
        fault_ns: median(faults),
        beyond_miss_ratio: median(beyond),
        in_a_row: Against::of(&rows),
        at_once: Against::of(&at_onces),
        revocation: Against::of(&revocations),
    })
}

/// What is printed of one way.
fn rows(way: &Way) -> [Vec<String>; 4] {
    let row = |what: &str, took: f64, against: String, ratio: f64, most: Option<f64>| {
        vec![
            if way.in_place { "in place" } else { "by a thread" }.to_owned(),
            what.to_owned(),
            micros(took),
            against,
            format!("{ratio:.2}x"),
            most.map_or_else(String::new, |most| format!("{most}x")),
            most.map_or("", |most| if ratio <= most { "met" } else { "missed" }).to_owned(),
        ]
    };
    let Way { bare_fault_ns, miss_ns, fault_ns, beyond_miss_ratio, in_a_row, at_once, revocation, .. } = way;
    let (bare, miss) = (micros(*bare_fault_ns), micros(*miss_ns));
    let against = format!("a bare fault ({bare}), beyond the miss of a call ({miss})");
    let kernel = format!("the kernel's part ({})", micros(revocation.yardstick));
    let load = "load of what another process has written";
    [
        row(load, *fault_ns, against, *beyond_miss_ratio, Some(MOST_OF_BARE)),
        row(
            "one of 64 in a row",
            in_a_row.measured,
            "a single one".into(),
            in_a_row.ratio,
            Some(MOST_IN_A_ROW),
        ),
        row(
            &format!("one of 64, by {THREADS} threads"),
            at_once.measured,
            "a single one".into(),
            at_once.ratio,
            None,
        ),
        row("revocation by an agent", revocation.measured, kernel, revocation.ratio, Some(MOST_REVOCATION)),
    ]
}
