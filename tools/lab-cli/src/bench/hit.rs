//! `rackmem-lab bench hit`: cached 8-byte accesses through the API, against plain accesses to a `Vec<u64>`.
//!
//! *Dependent*: every address is the last value read (a pointer chase in random order over every cache line), so
//! what is measured is latency. *Independent*: addresses come from a random generator, not from what was read, so the processor overlaps the
//! accesses; the generator's few cycles are in both figures.

use std::hint::black_box;

use rackmem::{Config, Discipline, GlobalAddr, NodeHandle, NodeId};
use serde::Serialize;

use super::rounds::{failed, median, rack, shuffle, table, time_each};
use cli::fault::Fault;
use cli::output;
use cli::size::Bytes;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sizes to measure; all of it fits in the cache
    #[arg(long, value_delimiter = ',', default_value = "16KiB,256KiB,1MiB,16MiB,64MiB")]
    pub(super) footprints: Vec<Bytes>,

    /// Accesses per round
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) accesses: u64,

    /// Rounds; the medians are printed
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(super) rounds: u64,

    /// Through pointers into mapped memory, in a rack of processes, against the same accesses to private memory
    #[arg(long)]
    pub(super) mapped: bool,

    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

/// One access pattern: nanoseconds per access, plain and cached, and their ratio.
#[derive(Clone, Copy, Debug, Serialize)]
struct Figure {
    plain_ns: f64,
    cached_ns: f64,
    ratio: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    footprint: Bytes,
    dependent_reads: Figure,
    independent_reads: Figure,
    writes: Figure,
}

#[derive(Debug, Serialize)]
struct HitReport {
    accesses_per_round: u64,
    rounds: u64,
    rows: Vec<Row>,
}

/// Words of a cache line: the chase visits one word of every line.
const LINE: usize = 8;

/// The same data twice: as a plain array, and cached on node 0 of a rack, with the home elsewhere.
struct Subject {
    plain: Vec<u64>,
    node: NodeHandle,
    base: GlobalAddr,
    mask: u64,
}

impl Subject {
    fn new(bytes: u64) -> Result<Self, Fault> {
        let words = (bytes / 8) as usize;
        if !words.is_power_of_two() || words < 2 * LINE {
            return Err(Fault::usage(format_args!(
                "a footprint of {bytes} bytes is not a power of two of at least 128 bytes"
            )));
        }
        let config = Config {
            nodes: 2,
            cache: (2 * bytes).max(4 << 20),
            memory: bytes + (4 << 20),
            ..Config::default()
        };
        let mut node = rack(config)?.node(NodeId(0));
        // Cache lines in random order, closed to a circle.
        let mut order: Vec<u64> = (0..(words / LINE) as u64).map(|line| line * LINE as u64).collect();
        shuffle(&mut order);
        let mut plain = vec![0u64; words];
        for (at, word) in order.iter().enumerate() {
            plain[*word as usize] = order[(at + 1) % order.len()];
        }
        let base = node.alloc(bytes, NodeId(1), Discipline::Coherent).map_err(failed)?;
        for (word, value) in plain.iter().enumerate() {
            node.write_word(base + 8 * word as u64, *value).map_err(failed)?;
        }
        Ok(Self { plain, node, base, mask: words as u64 - 1 })
    }

    fn chase_plain(&self, steps: u64) -> u64 {
        let mut at = 0;
        for _ in 0..steps {
            at = self.plain[at as usize];
        }
        at
    }

    fn chase_cached(&mut self, steps: u64) -> u64 {
        let base = self.base.bits();
        let mut at = 0;
        for _ in 0..steps {
            at = self.node.read_word(GlobalAddr::from_bits(base + 8 * at)).expect("it is allocated");
        }
        at
    }

    /// The next index of a random walk over all words (a linear congruential generator's high bits).
    #[inline]
    fn next_index(&self, state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33 & self.mask
    }

    fn sum_plain(&self, steps: u64) -> u64 {
        let (mut sum, mut state) = (0u64, 1);
        for _ in 0..steps {
            sum = sum.wrapping_add(self.plain[self.next_index(&mut state) as usize]);
        }
        sum
    }

    fn sum_cached(&mut self, steps: u64) -> u64 {
        let (mut sum, mut state) = (0u64, 1);
        for _ in 0..steps {
            let addr = GlobalAddr::from_bits(self.base.bits() + 8 * self.next_index(&mut state));
            sum = sum.wrapping_add(self.node.read_word(addr).expect("it is allocated"));
        }
        sum
    }

    fn write_plain(&mut self, steps: u64) {
        let mut state = 1;
        for step in 0..steps {
            let index = self.next_index(&mut state) as usize;
            self.plain[index] = step;
        }
        black_box(&mut self.plain);
    }

    fn write_cached(&mut self, steps: u64) {
        let mut state = 1;
        for step in 0..steps {
            let addr = GlobalAddr::from_bits(self.base.bits() + 8 * self.next_index(&mut state));
            self.node.write_word(addr, step).expect("it is allocated");
        }
    }
}

/// Takes turns, and gives the medians; the ratio is the median of the rounds' ratios.
fn figure(rounds: u64, mut plain: impl FnMut() -> f64, mut cached: impl FnMut() -> f64) -> Figure {
    let pairs: Vec<(f64, f64)> = (0..rounds).map(|_| (plain(), cached())).collect();
    Figure {
        plain_ns: median(pairs.iter().map(|pair| pair.0).collect()),
        cached_ns: median(pairs.iter().map(|pair| pair.1).collect()),
        ratio: median(pairs.iter().map(|pair| pair.1 / pair.0).collect()),
    }
}

fn measure(args: &Args, footprint: Bytes) -> Result<Row, Fault> {
    let subject = std::cell::RefCell::new(Subject::new(footprint.0)?);
    let n = args.accesses;
    black_box(subject.borrow_mut().chase_cached(n.min(1 << 20)));
    let dependent_reads = figure(
        args.rounds,
        || time_each(n, || _ = black_box(subject.borrow().chase_plain(black_box(n)))),
        || time_each(n, || _ = black_box(subject.borrow_mut().chase_cached(black_box(n)))),
    );
    let independent_reads = figure(
        args.rounds,
        || time_each(n, || _ = black_box(subject.borrow().sum_plain(black_box(n)))),
        || time_each(n, || _ = black_box(subject.borrow_mut().sum_cached(black_box(n)))),
    );
    let writes = figure(
        args.rounds,
        || time_each(n, || subject.borrow_mut().write_plain(black_box(n))),
        || time_each(n, || subject.borrow_mut().write_cached(black_box(n))),
    );
    Ok(Row { footprint, dependent_reads, independent_reads, writes })
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    if args.mapped {
        return super::mapped::run_hits(args);
    }
    let rows =
        args.footprints.iter().map(|footprint| measure(args, *footprint)).collect::<Result<Vec<_>, _>>()?;
    let report = HitReport { accesses_per_round: args.accesses, rounds: args.rounds, rows };
    output::show(args.json, "bench hit", &report, || {
        let header = [
            "footprint",
            "dependent: plain",
            "cached",
            "ratio",
            "independent: plain",
            "cached",
            "ratio",
            "writes: plain",
            "cached",
            "ratio",
        ];
        let rows: Vec<Vec<String>> = report
            .rows
            .iter()
            .map(|row| {
                let mut cells = vec![row.footprint.to_string()];
                for figure in [row.dependent_reads, row.independent_reads, row.writes] {
                    cells.push(format!("{:.2} ns", figure.plain_ns));
                    cells.push(format!("{:.2} ns", figure.cached_ns));
                    cells.push(format!("{:.2}x", figure.ratio));
                }
                cells
            })
            .collect();
        format!(
            "Cached 8-byte accesses through the API, against a Vec<u64> of the same size (medians of {} rounds)\n\n{}",
            args.rounds,
            table(&header, &rows)
        )
    })
}
