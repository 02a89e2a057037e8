//! `rackmem-lab bench miss --transport shm|udp`: misses of a node whose switch and whose blocks are in other processes,
//! beside the bare exchange of the same messages, in turns; and misses that a busy node has to answer.

use std::time::Duration;

use rackmem::{NoRealtime, Scheduling};
use serde::Serialize;

use super::node::{Order, Reader};
use super::{Args, BLOCKS};
use crate::bench::bare::Bare;
use crate::bench::nodes::{How, Nodes, spec};
use crate::bench::pingpong::{block_of, micros};
use crate::bench::rounds::table;
use crate::bench::samples::{Recorder, Rounds, Samples};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;
use cli::ycsb::Directory;

/// A miss may take so many bare exchanges.
const MOST_EXCHANGES: f64 = 1.25;
/// Misses a second that a busy node is asked to answer, and what half and all but a hundredth of them may take.
const BUSY_RATE: u32 = 10_000;
const BUSY_P50: Duration = Duration::from_micros(50);
const BUSY_P99: Duration = Duration::from_micros(300);

/// A rack: node 0 reads what is at home on node 1.
pub(in crate::bench) struct Misses(Nodes<Reader>);

impl Misses {
    fn start(args: &Args, realtime: bool, spec: &RackSpec, interrupt: &Interrupt) -> Result<Self, Fault> {
        let how = How { coalescing: !args.no_coalescing, realtime, ..How::default() };
        Nodes::start_as(how, args.transport, spec, &(), interrupt).map(Self)
    }

    /// A rack over this transport.
    pub(in crate::bench) fn over(
        transport: TransportKind,
        spec: &RackSpec,
        interrupt: &Interrupt,
    ) -> Result<Self, Fault> {
        Nodes::start(transport, spec, &(), interrupt).map(Self)
    }

    pub(in crate::bench) fn allocate(&mut self) -> Result<u64, Fault> {
        self.0.ask(0, Order::Allocate(BLOCKS))
    }

    /// A round of reads of blocks that nobody caches.
    fn read_fresh(&mut self) -> Result<Samples, Fault> {
        self.0.ask(0, Order::ReadFresh(BLOCKS))
    }

    /// A round of reads of blocks that their home has just modified.
    pub(in crate::bench) fn read_modified(&mut self, region: u64, value: u64) -> Result<Samples, Fault> {
        self.0.ask::<Samples>(1, Order::Write { region, blocks: BLOCKS, value })?;
        self.0.ask(0, Order::Read { region, blocks: BLOCKS, value })
    }

    /// Reads at a rate while node 1 computes on every core.
    fn read_from_busy(&mut self, reads: u64, every: Duration) -> Result<Samples, Fault> {
        self.0.ask::<()>(1, Order::Compute)?;
        let every = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        // The first find out that the machine is full.
        self.0.ask::<Samples>(0, Order::ReadPaced { reads: reads / 10 + 1, every })?;
        self.0.ask(0, Order::ReadPaced { reads, every })
    }
}

#[derive(Debug, Serialize)]
pub(in crate::bench) struct Figure {
    what: &'static str,
    median_ns: f64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    /// Of the medians, against the bare exchange, or what else is the yardstick.
    pub(in crate::bench) ratio: f64,
}

/// Misses that a node answers whose application computes on every core.
#[derive(Debug, Serialize)]
struct Busy {
    /// How the threads are scheduled that answer, and the one that asks.
    scheduling: &'static str,
    misses: u64,
    misses_per_s: f64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    met: bool,
}

impl Busy {
    fn of(paced: &Samples, realtime: bool, misses: u64) -> Self {
        let mut all = Recorder::new();
        all.add(paced);
        let (p50_ns, p99_ns) = (all.quantile(0.5), all.quantile(0.99));
        Self {
            scheduling: if realtime { "realtime" } else { "fair" },
            misses,
            misses_per_s: paced.rate(),
            p50_ns,
            p99_ns,
            p999_ns: all.quantile(0.999),
            met: Duration::from_nanos(p50_ns) < BUSY_P50 && Duration::from_nanos(p99_ns) < BUSY_P99,
        }
    }
}

#[derive(Debug, Serialize)]
struct ProcessMissReport {
    transport: TransportKind,
    block_size: Bytes,
    rounds: u64,
    coalescing: bool,
    pingpong: Figure,
    misses: Vec<Figure>,
    most_ratio: f64,
    /// By how those are scheduled who answer.
    busy: Vec<Busy>,
}

impl Figure {
    pub(in crate::bench) fn of(rounds: &Rounds, what: &'static str, exchange: Option<f64>) -> Self {
        let median_ns = rounds.median();
        Self {
            what,
            median_ns,
            p50_ns: rounds.all.quantile(0.5),
            p99_ns: rounds.all.quantile(0.99),
            p999_ns: rounds.all.quantile(0.999),
            ratio: median_ns / exchange.unwrap_or(median_ns),
        }
    }

    /// A row of a table: what, median, ratio, p50, p99, p99.9.
    pub(in crate::bench) fn cells(&self) -> Vec<String> {
        vec![
            self.what.to_owned(),
            micros(self.median_ns),
            format!("{:.2}x", self.ratio),
            micros(self.p50_ns as f64),
            micros(self.p99_ns as f64),
            micros(self.p999_ns as f64),
        ]
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    let block = block_of(args.block_size, "--block-size")?;
    let spec = spec(block);
    let interrupt = Interrupt::listen()?;
    let [mut bare, mut modified, mut at_home, mut fresh, mut moving, mut peeked] =
        std::array::from_fn(|_| Rounds::new());
    {
        let mut exchange = Bare::start(args.transport, block, &interrupt)?;
        let mut rack = Misses::start(args, false, &spec, &interrupt)?;
        let region = rack.allocate()?;
        let keeping = RackSpec { directory: Directory::Home, ..spec.clone() };
        let mut keeping = Misses::start(args, false, &keeping, &interrupt)?;
        let kept = keeping.allocate()?;
        let spec = RackSpec { peek: true, ..spec.clone() };
        let mut peeking = Misses::start(args, false, &spec, &interrupt)?;
        let written = peeking.allocate()?;
        for round in 0..=args.rounds {
            let exchanged = exchange.exchange(BLOCKS)?;
            let changed_at_home = keeping.read_modified(kept, round)?;
            let unread = keeping.read_fresh()?;
            let changed = rack.read_modified(region, round)?;
            // The home gives the switch these blocks' entries one by one, and refuses whoever asks for the one that it has in hand.
            let read = rack.read_fresh()?;
            let shown = peeking.read_modified(written, round)?;
            // The first round warms up.
            if round > 0 {
                bare.add(&exchanged);
                at_home.add(&changed_at_home);
                fresh.add(&unread);
                moving.add(&read);
                modified.add(&changed);
                peeked.add(&shown);
            }
        }
    }
    let mut busy = Vec::new();
    let refused = Scheduling::Realtime.check().err();
    for realtime in [false, true] {
        if !realtime || refused.is_none() {
            let mut rack = Misses::start(args, realtime, &spec, &interrupt)?;
            let paced = rack.read_from_busy(args.busy_misses, Duration::from_secs(1) / BUSY_RATE)?;
            busy.push(Busy::of(&paced, realtime, args.busy_misses));
        }
    }
    let pingpong = Figure::of(&bare, "bare exchange", None);
    let against = Some(pingpong.median_ns);
    let report = ProcessMissReport {
        transport: args.transport,
        block_size: args.block_size,
        rounds: args.rounds,
        coalescing: !args.no_coalescing,
        misses: vec![
            Figure::of(&modified, "read of a block modified elsewhere, entry in the switch", against),
            Figure::of(&at_home, "the same, entry at its home", against),
            Figure::of(&fresh, "read of a fresh block, entry at its home", against),
            Figure::of(&moving, "the same, entry on its way to the switch", against),
            Figure::of(&peeked, "8 B of a block modified elsewhere, where it is (PEEK)", against),
        ],
        pingpong,
        most_ratio: MOST_EXCHANGES,
        busy,
    };
    output::show(args.json, "bench miss", &report, || text(&report, refused))
}

fn text(report: &ProcessMissReport, refused: Option<NoRealtime>) -> String {
    let rows: Vec<Vec<String>> =
        [&report.pingpong].into_iter().chain(&report.misses).map(Figure::cells).collect();
    let met = |met| if met { "met" } else { "not met" };
    let busy: Vec<Vec<String>> = report
        .busy
        .iter()
        .map(|busy| {
            vec![
                busy.scheduling.to_owned(),
                format!("{:.0}/s", busy.misses_per_s),
                micros(busy.p50_ns as f64),
                micros(busy.p99_ns as f64),
                micros(busy.p999_ns as f64),
                met(busy.met).to_owned(),
            ]
        })
        .collect();
    let target = format!("p50 < {BUSY_P50:?}, p99 < {BUSY_P99:?}");
    let refused = refused.map_or_else(String::new, |refused| format!("\nrealtime: {refused}\n"));
    format!(
        "Misses of a {} block over {}{}: node 0 asks, the switch forwards, node 1 answers\n\n{}\n\
         target: a miss at most {:.2}x the bare exchange: {}\n\n\
         {} misses while node 1 computes on every core, by how those are scheduled who answer\n\n{}{refused}",
        report.block_size,
        report.transport.name(),
        if report.coalescing { "" } else { ", no UNLOCK waits for coalescing" },
        table(&["", "median", "against bare", "p50", "p99", "p99.9"], &rows),
        report.most_ratio,
        met(report.misses.iter().all(|figure| figure.ratio <= report.most_ratio)),
        report.busy.first().map_or(0, |busy| busy.misses),
        table(&["scheduling", "rate", "p50", "p99", "p99.9", &target], &busy),
    )
}
