//! `rackmem-lab bench miss`: what it costs when the block is not there, or not writable.
//!
//! Yardsticks of the same run: copying a block between two buffers that stay in the processor's caches (hot),
//! and between two that do not (cold). A miss copies a block, too, and exchanges the messages of its event.

use std::hint::black_box;
use std::time::Instant;

use hdrhistogram::Histogram;
use rackmem::{BlockSize, Config, Directory, Discipline, GlobalAddr, NodeHandle, NodeId};
use serde::Serialize;

use super::networked::misses;
use super::rounds::{failed, median, rack, shuffle, table, time_each};
use cli::fault::Fault;
use cli::output;
use cli::processes::TransportKind;
use cli::size::Bytes;

/// Flags.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What carries the rack's messages. With `shm` and `udp` the switch and both nodes are processes, and the yardstick
    /// is the bare exchange of the same messages
    #[arg(long, value_enum, default_value_t = TransportKind::Inline)]
    transport: TransportKind,

    /// The unit of coherence
    #[arg(long, default_value = "4KiB")]
    block_size: Bytes,

    /// Rounds; the medians are printed
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(3..=10_000))]
    rounds: u64,

    /// Threads of the crowded part, each on its own node and blocks; more than cores is the point (inline only)
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=32))]
    threads: u16,

    /// Misses that a node is asked to answer whose application computes on every core (shm and udp only)
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    busy_misses: u64,

    /// No UNLOCK waits for the next message to the switch, to travel in its datagram: to measure what that saves (udp only)
    #[arg(long)]
    no_company: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// One kind of access.
#[derive(Debug, Serialize)]
struct Figure {
    access: &'static str,
    directory: &'static str,
    threads: u16,
    median_ns: f64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    /// Of the median, against the yardstick.
    ratio: f64,
    yardstick: &'static str,
}

#[derive(Debug, Serialize)]
struct Report {
    command: &'static str,
    version: &'static str,
    block_size: Bytes,
    rounds: u64,
    memcpy_hot_ns: f64,
    memcpy_cold_ns: f64,
    figures: Vec<Figure>,
}

/// Blocks that one round accesses: few enough to stay in the processor's second-level cache twice.
const BLOCKS: u64 = 48;

/// What a round does to each of its blocks, timed one by one.
struct Samples {
    each: Histogram<u64>,
    rounds: Vec<f64>,
}

impl Samples {
    fn new() -> Self {
        Self {
            each: Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("3 digits are possible"),
            rounds: Vec::new(),
        }
    }

    /// Times `access` on every block.
    fn round(&mut self, blocks: u64, mut access: impl FnMut(u64)) {
        let began = Instant::now();
        let mut last = began;
        for block in 0..blocks {
            access(block);
            let now = Instant::now();
            self.each.saturating_record(u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX));
            last = now;
        }
        self.rounds.push((last - began).as_nanos() as f64 / blocks as f64);
    }

    fn figure(
        self,
        access: &'static str,
        directory: Directory,
        threads: u16,
        yardstick: (&'static str, f64),
    ) -> Figure {
        let median_ns = median(self.rounds);
        Figure {
            access,
            directory: if directory == Directory::Switch { "switch" } else { "home" },
            threads,
            median_ns,
            p50_ns: self.each.value_at_quantile(0.5),
            p99_ns: self.each.value_at_quantile(0.99),
            p999_ns: self.each.value_at_quantile(0.999),
            ratio: median_ns / yardstick.1,
            yardstick: yardstick.0,
        }
    }
}

/// Copies blocks between buffers of `bytes` each, in random order.
fn memcpy(block: BlockSize, bytes: u64, rounds: u64) -> f64 {
    let (len, blocks) = (block.len(), bytes / block.bytes());
    let from = vec![1u8; usize::try_from(bytes).expect("it fits in memory")];
    let mut to = vec![2u8; from.len()];
    let mut order: Vec<u64> = (0..blocks).collect();
    shuffle(&mut order);
    let samples = (0..rounds.min(15)).map(|_| {
        time_each(blocks, || {
            for at in &order {
                let at = usize::try_from(at * block.bytes()).expect("it fits in memory");
                to[at..at + len].copy_from_slice(black_box(&from[at..at + len]));
                black_box(&mut to[at]);
            }
        })
    });
    median(samples.collect())
}

struct Bench<'a> {
    args: &'a Args,
    block: BlockSize,
    directory: Directory,
    hot: (&'static str, f64),
    cold: (&'static str, f64),
}

impl Bench<'_> {
    fn config(&self, nodes: usize) -> Config {
        let block = self.block.bytes();
        Config {
            nodes,
            block_size: self.block,
            cache: 1024 * block,
            memory: 8192 * block,
            directory: self.directory,
            ..Config::default()
        }
    }

    fn at(&self, base: GlobalAddr, block: u64) -> GlobalAddr {
        base + block * self.block.bytes()
    }

    /// Reads of blocks that nobody caches, with room in the cache.
    fn read_miss(&self) -> Result<Figure, Fault> {
        let rack = rack(self.config(2))?;
        let mut reader = rack.node(NodeId(0));
        // The frames are touched once, so that no page fault of the host is measured.
        let bytes = 1024 * self.block.bytes();
        let region = reader.alloc(bytes, NodeId(1), Discipline::Coherent).map_err(failed)?;
        for block in 0..1024 {
            reader.read_word(self.at(region, block)).map_err(failed)?;
        }
        reader.free(region).map_err(failed)?;
        let mut samples = Samples::new();
        for round in 0..=self.args.rounds {
            let region =
                reader.alloc(BLOCKS * self.block.bytes(), NodeId(1), Discipline::Coherent).map_err(failed)?;
            let mut ignored = Samples::new();
            let timed = if round == 0 { &mut ignored } else { &mut samples };
            timed.round(BLOCKS, |block| {
                black_box(reader.read_word(self.at(region, block)).expect("it is allocated"));
            });
            reader.free(region).map_err(failed)?;
        }
        Ok(samples.figure("read miss", self.directory, 1, self.hot))
    }

    /// Reads of blocks that nobody caches, with a full cache: each evicts a clean block first.
    fn read_miss_full(&self) -> Result<Figure, Fault> {
        let config = self.config(2);
        let (blocks, cache) = (64 << 20 >> self.block.shift(), 16 << 20);
        let rack = rack(Config { cache, memory: (blocks + 1024) * self.block.bytes(), ..config })?;
        let mut reader = rack.node(NodeId(0));
        let region =
            reader.alloc(blocks * self.block.bytes(), NodeId(1), Discipline::Coherent).map_err(failed)?;
        let mut order: Vec<u64> = (0..blocks).collect();
        shuffle(&mut order);
        let mut samples = Samples::new();
        for block in &order {
            reader.read_word(self.at(region, *block)).map_err(failed)?;
        }
        for _ in 0..self.args.rounds.min(7) {
            samples.round(blocks, |at| {
                let block = order[usize::try_from(at).expect("it fits in memory")];
                black_box(reader.read_word(self.at(region, block)).expect("it is allocated"));
            });
        }
        Ok(samples.figure("read miss, full cache", self.directory, 1, self.cold))
    }

    /// Writes to blocks that another node has a copy of, too.
    fn upgrade(&self) -> Result<Figure, Fault> {
        let rack = rack(self.config(3))?;
        let (mut writer, mut other) = (rack.node(NodeId(0)), rack.node(NodeId(1)));
        let region =
            writer.alloc(BLOCKS * self.block.bytes(), NodeId(2), Discipline::Coherent).map_err(failed)?;
        let mut samples = Samples::new();
        for _ in 0..self.args.rounds {
            for block in 0..BLOCKS {
                writer.read_word(self.at(region, block)).map_err(failed)?;
                other.read_word(self.at(region, block)).map_err(failed)?;
            }
            samples.round(BLOCKS, |block| {
                writer.write_word(self.at(region, block), 1).expect("it is allocated")
            });
        }
        Ok(samples.figure("upgrade", self.directory, 1, self.hot))
    }

    /// Reads of blocks that another node has modified, by one thread, or by several at a time, each with blocks of
    /// its own.
    fn read_modified(&self, threads: u16) -> Result<Figure, Fault> {
        let rack = rack(self.config(2 * usize::from(threads)))?;
        let mut work = Vec::new();
        for thread in 0..threads {
            let (reader, mut writer) = (rack.node(NodeId(2 * thread)), rack.node(NodeId(2 * thread + 1)));
            let home = NodeId((2 * thread + 2) % (2 * threads));
            let region =
                writer.alloc(BLOCKS * self.block.bytes(), home, Discipline::Coherent).map_err(failed)?;
            work.push((reader, writer, region));
        }
        let one = |(mut reader, mut writer, region): (NodeHandle, NodeHandle, GlobalAddr)| {
            let mut samples = Samples::new();
            for round in 0..self.args.rounds {
                for block in 0..BLOCKS {
                    writer.write_word(self.at(region, block), round).expect("it is allocated");
                }
                samples.round(BLOCKS, |block| {
                    assert_eq!(reader.read_word(self.at(region, block)).expect("it is allocated"), round);
                });
            }
            samples
        };
        let mut all = Samples::new();
        std::thread::scope(|scope| {
            let running: Vec<_> = work.into_iter().map(|work| scope.spawn(|| one(work))).collect();
            for thread in running {
                let samples = thread.join().expect("a thread of the benchmark panicked");
                all.each.add(&samples.each).expect("the same bounds");
                all.rounds.extend(samples.rounds);
            }
        });
        Ok(all.figure("read of a modified block", self.directory, threads, self.hot))
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    if args.no_company && args.transport != TransportKind::Udp {
        return Err(Fault::usage("--no-company is about datagrams: it takes --transport udp"));
    }
    if args.transport != TransportKind::Inline {
        return misses::run(&misses::Question {
            transport: args.transport,
            block: args.block_size,
            rounds: args.rounds,
            busy_misses: args.busy_misses,
            company: !args.no_company,
            json: args.json,
        });
    }
    let block = BlockSize::new(args.block_size.0).ok_or_else(|| {
        Fault::usage(format_args!(
            "--block-size {} is not a power of two from 64 B to 1 MiB",
            args.block_size
        ))
    })?;
    let hot = ("hot memcpy", memcpy(block, 8 * block.bytes(), args.rounds));
    let cold = ("cold memcpy", memcpy(block, 64 << 20, args.rounds.min(5)));
    let mut figures = Vec::new();
    for directory in [Directory::Switch, Directory::Home] {
        let bench = Bench { args, block, directory, hot, cold };
        figures.push(bench.read_miss()?);
        figures.push(bench.read_miss_full()?);
        figures.push(bench.upgrade()?);
        figures.push(bench.read_modified(1)?);
        figures.push(bench.read_modified(args.threads)?);
    }
    let report = Report {
        command: "bench miss",
        version: env!("CARGO_PKG_VERSION"),
        block_size: args.block_size,
        rounds: args.rounds,
        memcpy_hot_ns: hot.1,
        memcpy_cold_ns: cold.1,
        figures,
    };
    if args.json {
        return output::print_json(&report);
    }
    let rows: Vec<Vec<String>> = report
        .figures
        .iter()
        .map(|figure| {
            vec![
                figure.access.to_owned(),
                figure.directory.to_owned(),
                figure.threads.to_string(),
                format!("{:.0} ns", figure.median_ns),
                format!("{:.1}x {}", figure.ratio, figure.yardstick),
                format!("{} ns", figure.p50_ns),
                format!("{} ns", figure.p99_ns),
                format!("{} ns", figure.p999_ns),
            ]
        })
        .collect();
    output::print(&format!(
        "Misses of a {} block (memcpy of one: hot {:.0} ns, cold {:.0} ns)\n\n{}",
        args.block_size,
        hot.1,
        cold.1,
        table(&["access", "directory", "threads", "median", "against", "p50", "p99", "p99.9"], &rows)
    ))
}
