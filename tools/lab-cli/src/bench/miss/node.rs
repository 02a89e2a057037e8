//! A node of a rack whose misses are timed.

use std::hint::black_box;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use rackmem::{Discipline, Error, GlobalAddr, NodeHandle, NodeId};
use serde::{Deserialize, Serialize};

use crate::bench::nodes::{Node, Obeyed, Work, answer};
use crate::bench::samples::{Recorder, Samples};
use cli::processes::child::{Reason, in_background};

/// Where the blocks are at home that are read.
const HOME: NodeId = NodeId(1);
/// Blocks that are allocated at a time: few enough to stay in the processor's caches.
const BATCH: u64 = 48;

/// What the command wants of a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Memory for so many blocks at home on node 1. Answers where.
    Allocate(u64),
    /// Write a word of each of these blocks. Answers [`Samples`].
    Write { region: u64, blocks: u64, value: u64 },
    /// Read a word of each of these blocks, which must be this. Answers [`Samples`].
    Read { region: u64, blocks: u64, value: u64 },
    /// Read so many blocks that nobody caches, at home on node 1. Answers [`Samples`].
    ReadFresh(u64),
    /// The same, one after every so many nanoseconds.
    ReadPaced { reads: u64, every: u64 },
    /// Compute on every core from now on, without asking anything of the rack.
    Compute,
}

/// A node of a rack whose misses are timed.
pub(crate) struct Reader {
    handle: NodeHandle,
    block: u64,
}

impl Work for Reader {
    const NAME: &'static str = "bench miss";
    type Setup = ();
    type Order = Order;

    fn new(node: Node, (): ()) -> Self {
        Self::on(node.handle())
    }

    fn obey(&mut self, order: Order) -> Obeyed {
        match order {
            Order::Allocate(blocks) => answer(self.allocate(blocks, HOME)?.bits()),
            Order::Write { region, blocks, value } => {
                answer(self.write(GlobalAddr::from_bits(region), blocks, value)?)
            }
            Order::Read { region, blocks, value } => {
                answer(self.read(GlobalAddr::from_bits(region), blocks, Some(value))?)
            }
            Order::ReadFresh(blocks) => answer(self.read_fresh(blocks)?),
            Order::ReadPaced { reads, every } => answer(self.read_paced(reads, Duration::from_nanos(every))?),
            Order::Compute => answer(compute()?),
        }
    }
}

impl Reader {
    pub(super) fn on(handle: NodeHandle) -> Self {
        Self { block: handle.block_size().bytes(), handle }
    }

    pub(super) fn allocate(&mut self, blocks: u64, home: NodeId) -> Result<GlobalAddr, Error> {
        self.handle.alloc(blocks * self.block, home, Discipline::Coherent)
    }

    /// Writes a word of each block, one after the other.
    pub(super) fn write(&mut self, region: GlobalAddr, blocks: u64, value: u64) -> Result<Samples, Error> {
        Recorder::timed(blocks, |block| self.handle.write_word(region + block * self.block, value))
    }

    /// Reads a word of one block.
    pub(super) fn read_one(&mut self, region: GlobalAddr, block: u64) -> Result<u64, Error> {
        self.handle.read_word(region + block * self.block).map(black_box)
    }

    /// Reads blocks, one after the other.
    pub(super) fn read(
        &mut self,
        region: GlobalAddr,
        blocks: u64,
        value: Option<u64>,
    ) -> Result<Samples, Error> {
        Recorder::timed(blocks, |block| {
            let word = self.read_one(region, block)?;
            assert!(
                value.is_none_or(|value| value == word),
                "read {word} where {value:?} was written: a bug"
            );
            Ok(())
        })
    }

    /// Reads blocks that nobody caches.
    pub(super) fn read_fresh(&mut self, blocks: u64) -> Result<Samples, Error> {
        let region = self.allocate(blocks, HOME)?;
        let samples = self.read(region, blocks, None)?;
        self.handle.free(region)?;
        Ok(samples)
    }

    /// Reads blocks that nobody caches, one at every tick; what comes too late follows at once. Only the reads are timed,
    /// not how late they are.
    fn read_paced(
        &mut self,
        reads: u64,
        every: Duration,
    ) -> Result<Samples, Box<dyn std::error::Error + Send + Sync>> {
        // Sleeps end when they should, and not up to 50 us later.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let mut recorder = Recorder::new();
        let mut next = Instant::now();
        let began = next;
        let mut left = reads;
        while left > 0 {
            let region = self.allocate(BATCH, HOME)?;
            for block in 0..left.min(BATCH) {
                let now = Instant::now();
                if next > now {
                    thread::sleep(next - now);
                }
                next += every;
                let asked = Instant::now();
                self.read_one(region, block)?;
                recorder.record(asked.elapsed());
            }
            left -= left.min(BATCH);
            self.handle.free(region)?;
        }
        Ok(recorder.samples(began.elapsed()))
    }
}

/// Computes on every core, for ever.
pub(crate) fn compute() -> Result<(), Reason> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    (0..cores).try_for_each(|core| {
        in_background("computes", move || {
            let mut state = core as u64;
            loop {
                for _ in 0..1 << 20 {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                }
                black_box(state);
            }
        })
    })
}
