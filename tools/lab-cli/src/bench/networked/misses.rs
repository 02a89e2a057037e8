//! `rackmem-lab bench miss --transport shm|udp`: misses of a node whose switch and whose blocks are in other processes,
//! beside the bare exchange of the same messages, in turns; and misses that a busy node has to answer.

use std::time::Duration;

use rackmem::{NoRealtime, Scheduling};
use serde::Serialize;

use super::Role;
use super::crews::Three;
use super::pingpong::{block_of, micros, processes_of, spec};
use super::samples::{Recorder, Samples};
use crate::bench::rounds::{median, table};
use cli::fault::Fault;
use cli::interrupt::Interrupt;
use cli::output;
use cli::processes::TransportKind;
use cli::processes::place::RackSpec;
use cli::size::Bytes;
use cli::ycsb::Directory;

/// Blocks that one round reads: few enough to stay in the processor's second-level cache twice.
const BLOCKS: u64 = 48;
/// A miss may take so many bare exchanges.
const MOST_EXCHANGES: f64 = 1.25;
/// Misses a second that a busy node is asked to answer, and what half and all but a hundredth of them may take.
const BUSY_RATE: u32 = 10_000;
const BUSY_P50: Duration = Duration::from_micros(50);
const BUSY_P99: Duration = Duration::from_micros(300);

/// What to measure.
pub(crate) struct Question {
    pub(crate) transport: TransportKind,
    pub(crate) block: Bytes,
    pub(crate) rounds: u64,
    /// Misses that the busy node is asked to answer.
    pub(crate) busy_misses: u64,
    /// Over UDP: UNLOCKs wait for the next message to the switch, and travel in its datagram.
    pub(crate) company: bool,
    pub(crate) json: bool,
}

impl Question {
    fn rack(&self, realtime: bool, spec: &RackSpec, interrupt: &Interrupt) -> Result<Three, Fault> {
        Three::start_with(self.transport, Role::Rack { realtime }, spec, interrupt, self.company)
    }
}

#[derive(Debug, Serialize)]
struct Figure {
    what: &'static str,
    median_ns: f64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    /// Of the medians, against the bare exchange.
    ratio: f64,
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
struct Report {
    command: &'static str,
    version: &'static str,
    transport: TransportKind,
    block_size: Bytes,
    rounds: u64,
    company: bool,
    pingpong: Figure,
    misses: Vec<Figure>,
    most_ratio: f64,
    /// By how those are scheduled who answer.
    busy: Vec<Busy>,
}

/// Rounds of one kind.
struct Rounds {
    all: Recorder,
    means: Vec<f64>,
}

impl Rounds {
    fn new() -> Self {
        Self { all: Recorder::new(), means: Vec::new() }
    }

    fn add(&mut self, samples: &Samples) {
        self.all.add(samples);
        self.means.push(samples.mean());
    }

    fn figure(self, what: &'static str, exchange: Option<f64>) -> Figure {
        let median_ns = median(self.means);
        Figure {
            what,
            median_ns,
            p50_ns: self.all.quantile(0.5),
            p99_ns: self.all.quantile(0.99),
            p999_ns: self.all.quantile(0.999),
            ratio: median_ns / exchange.unwrap_or(median_ns),
        }
    }
}

/// Runs the command.
pub(crate) fn run(question: &Question) -> Result<(), Fault> {
    processes_of(question.transport)?;
    let spec = spec(block_of(question.block, "--block-size")?);
    let interrupt = Interrupt::listen()
        .map_err(|error| Fault::failed(format_args!("cannot listen for Ctrl-C: {error}")))?;
    let [mut bare, mut modified, mut at_home, mut fresh, mut moving, mut peeked] =
        std::array::from_fn(|_| Rounds::new());
    {
        let mut exchange = Three::start(question.transport, Role::Bare, &spec, &interrupt)?;
        let mut rack = question.rack(false, &spec, &interrupt)?;
        let region = rack.allocate(BLOCKS)?;
        let keeping = RackSpec { directory: Directory::Home, ..spec.clone() };
        let mut keeping = question.rack(false, &keeping, &interrupt)?;
        let kept = keeping.allocate(BLOCKS)?;
        let spec = RackSpec { peek: true, ..spec.clone() };
        let mut peeking = question.rack(false, &spec, &interrupt)?;
        let written = peeking.allocate(BLOCKS)?;
        for round in 0..=question.rounds {
            let exchanged = exchange.exchange(BLOCKS)?;
            let changed_at_home = keeping.read_modified(kept, BLOCKS, round)?;
            let unread = keeping.read_fresh(BLOCKS)?;
            let changed = rack.read_modified(region, BLOCKS, round)?;
            // The home gives the switch these blocks' entries one by one, and refuses whoever asks for the one that it has in hand.
            let read = rack.read_fresh(BLOCKS)?;
            let shown = peeking.read_modified(written, BLOCKS, round)?;
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
            let mut rack = question.rack(realtime, &spec, &interrupt)?;
            let paced = rack.read_from_busy(question.busy_misses, Duration::from_secs(1) / BUSY_RATE)?;
            busy.push(Busy::of(&paced, realtime, question.busy_misses));
        }
    }
    let pingpong = bare.figure("bare exchange", None);
    let against = Some(pingpong.median_ns);
    let report = Report {
        command: "bench miss",
        version: env!("CARGO_PKG_VERSION"),
        transport: question.transport,
        block_size: question.block,
        rounds: question.rounds,
        company: question.company,
        misses: vec![
            modified.figure("read of a block modified elsewhere, entry in the switch", against),
            at_home.figure("the same, entry at its home", against),
            fresh.figure("read of a fresh block, entry at its home", against),
            moving.figure("the same, entry on its way to the switch", against),
            peeked.figure("8 B of a block modified elsewhere, where it is (PEEK)", against),
        ],
        pingpong,
        most_ratio: MOST_EXCHANGES,
        busy,
    };
    if question.json { output::print_json(&report) } else { output::print(&text(&report, refused)) }
}

fn text(report: &Report, refused: Option<NoRealtime>) -> String {
    let rows: Vec<Vec<String>> = [&report.pingpong]
        .into_iter()
        .chain(&report.misses)
        .map(|figure| {
            vec![
                figure.what.to_owned(),
                micros(figure.median_ns),
                format!("{:.2}x", figure.ratio),
                micros(figure.p50_ns as f64),
                micros(figure.p99_ns as f64),
                micros(figure.p999_ns as f64),
            ]
        })
        .collect();
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
    let mark = format!("p50 < {BUSY_P50:?}, p99 < {BUSY_P99:?}");
    let refused = refused.map_or_else(String::new, |refused| format!("\nrealtime: {refused}\n"));
    format!(
        "Misses of a {} block over {}{}: node 0 asks, the switch forwards, node 1 answers\n\n{}\n\
         mark: a miss at most {:.2}x the bare exchange: {}\n\n\
         {} misses while node 1 computes on every core, by how those are scheduled who answer\n\n{}{refused}",
        report.block_size,
        report.transport.name(),
        if report.company { "" } else { ", no UNLOCK waits for company" },
        table(&["", "median", "against bare", "p50", "p99", "p99.9"], &rows),
        report.most_ratio,
        met(report.misses.iter().all(|figure| figure.ratio <= report.most_ratio)),
        report.busy.first().map_or(0, |busy| busy.misses),
        table(&["scheduling", "rate", "p50", "p99", "p99.9", &mark], &busy),
    )
}
