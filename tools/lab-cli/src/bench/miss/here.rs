//! Misses on an embedded rack.
//!
//! Yardsticks of the same run: copying a block between two buffers that stay in the processor's caches (hot),
//! and between two that do not (cold). A miss copies a block, too, and exchanges the messages of its event.

use std::hint::black_box;

use rackmem::{BlockSize, Config, Directory, NodeId};
use serde::Serialize;

use super::node::Reader;
use super::{Args, BLOCKS};
use crate::bench::pingpong::block_of;
use crate::bench::rounds::{failed, median, rack, shuffle, table, time_each};
use crate::bench::samples::{Recorder, Rounds};
use cli::fault::Fault;
use cli::output;
use cli::size::Bytes;

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
struct MissReport {
    block_size: Bytes,
    rounds: u64,
    memcpy_hot_ns: f64,
    memcpy_cold_ns: f64,
    figures: Vec<Figure>,
}

impl Figure {
    fn of(
        rounds: &Rounds,
        access: &'static str,
        directory: Directory,
        threads: u16,
        yardstick: (&'static str, f64),
    ) -> Self {
        let median_ns = rounds.median();
        Self {
            access,
            directory: if directory == Directory::Switch { "switch" } else { "home" },
            threads,
            median_ns,
            p50_ns: rounds.all.quantile(0.5),
            p99_ns: rounds.all.quantile(0.99),
            p999_ns: rounds.all.quantile(0.999),
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

    fn figure(&self, rounds: &Rounds, access: &'static str) -> Figure {
        Figure::of(rounds, access, self.directory, 1, self.hot)
    }

    /// Reads of blocks that nobody caches, with capacity in the cache.
    fn read_miss(&self) -> Result<Figure, Fault> {
        let rack = rack(self.config(2))?;
        let mut reader = Reader::on(rack.node(NodeId(0)));
        // The frames are touched once, so that no page fault of the host is measured.
        reader.read_fresh(1024).map_err(failed)?;
        let mut rounds = Rounds::new();
        for round in 0..=self.args.rounds {
            let samples = reader.read_fresh(BLOCKS).map_err(failed)?;
            if round > 0 {
                rounds.add(&samples);
            }
        }
        Ok(self.figure(&rounds, "read miss"))
    }

    /// Reads of blocks that nobody caches, with a full cache: each evicts a clean block first.
    fn read_miss_full(&self) -> Result<Figure, Fault> {
        let config = self.config(2);
        let (blocks, cache) = (64 << 20 >> self.block.shift(), 16 << 20);
        let rack = rack(Config { cache, memory: (blocks + 1024) * self.block.bytes(), ..config })?;
        let mut reader = Reader::on(rack.node(NodeId(0)));
        let region = reader.allocate(blocks, NodeId(1)).map_err(failed)?;
        let mut order: Vec<u64> = (0..blocks).collect();
        shuffle(&mut order);
        let mut rounds = Rounds::new();
        // The first round fills the cache.
        for round in 0..=self.args.rounds.min(7) {
            let read = |at: u64| reader.read_one(region, order[at as usize]).map(drop);
            let samples = Recorder::timed(blocks, read).map_err(failed)?;
            if round > 0 {
                rounds.add(&samples);
            }
        }
        Ok(Figure::of(&rounds, "read miss, full cache", self.directory, 1, self.cold))
    }

    /// Writes to blocks that another node has a copy of, too.
    fn upgrade(&self) -> Result<Figure, Fault> {
        let rack = rack(self.config(3))?;
        let (mut writer, mut other) = (Reader::on(rack.node(NodeId(0))), Reader::on(rack.node(NodeId(1))));
        let region = writer.allocate(BLOCKS, NodeId(2)).map_err(failed)?;
        let mut rounds = Rounds::new();
        for _ in 0..self.args.rounds {
            writer.read(region, BLOCKS, None).map_err(failed)?;
            other.read(region, BLOCKS, None).map_err(failed)?;
            rounds.add(&writer.write(region, BLOCKS, 1).map_err(failed)?);
        }
        Ok(self.figure(&rounds, "upgrade"))
    }

    /// Reads of blocks that another node has modified, by one thread, or by several at a time, each with blocks of
    /// its own.
    fn read_modified(&self, threads: u16) -> Result<Figure, Fault> {
        let rack = rack(self.config(2 * usize::from(threads)))?;
        let one = |thread: u16| {
            let node = |number| Reader::on(rack.node(NodeId(number)));
            let (mut reader, mut writer) = (node(2 * thread), node(2 * thread + 1));
            let home = NodeId((2 * thread + 2) % (2 * threads));
            let region = writer.allocate(BLOCKS, home)?;
            let round = |round| {
                writer.write(region, BLOCKS, round)?;
                reader.read(region, BLOCKS, Some(round))
            };
            (0..self.args.rounds).map(round).collect::<Result<Vec<_>, _>>()
        };
        let mut rounds = Rounds::new();
        std::thread::scope(|scope| {
            let at_work: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
            for thread in at_work {
                let samples = thread.join().expect("a thread of the benchmark panicked").map_err(failed)?;
                samples.iter().for_each(|samples| rounds.add(samples));
            }
            Ok(())
        })?;
        Ok(Figure::of(&rounds, "read of a modified block", self.directory, threads, self.hot))
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Fault> {
    let block = block_of(args.block_size, "--block-size")?;
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
    let report = MissReport {
        block_size: args.block_size,
        rounds: args.rounds,
        memcpy_hot_ns: hot.1,
        memcpy_cold_ns: cold.1,
        figures,
    };
    output::show(args.json, "bench miss", &report, || {
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
        format!(
            "Misses of a {} block (memcpy of one: hot {:.0} ns, cold {:.0} ns)\n\n{}",
            args.block_size,
            hot.1,
            cold.1,
            table(&["access", "directory", "threads", "median", "against", "p50", "p99", "p99.9"], &rows)
        )
    })
}
