//! A place of a rack whose misses are timed.

use std::hint::black_box;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use rackmem::{Discipline, GlobalAddr, NodeHandle, NodeId, Scheduling};

use super::orders::{Event, Order};
use super::samples::{Recorder, Samples};
use cli::processes::child::{Never, Reason, in_background};
use cli::processes::place::{Seat, Seated};
use cli::processes::{Orders, Teller};

/// Where the blocks are at home that are read.
const HOME: NodeId = NodeId(1);
/// Blocks that are allocated at a time: few enough to stay in the processor's caches.
const BATCH: u64 = 48;

pub(super) fn place(
    seat: &Seat,
    realtime: bool,
    orders: &Orders<Order>,
    teller: &Teller<Event>,
) -> Result<Never, Reason> {
    let scheduling = if realtime { Scheduling::Realtime } else { Scheduling::Fair };
    let seated = seat.take_scheduled(scheduling)?;
    teller.tell(Event::Seated);
    let Seated::Node(_, rack) = seated else {
        // The switch is at work in a thread of its own.
        loop {
            thread::park();
        }
    };
    scheduling.ask().map_err(failed)?;
    let mut node = Node { handle: rack.here(), block: seat.rack().block().bytes() };
    loop {
        let event = match orders.next() {
            Order::Allocate(blocks) => Event::Region(node.allocate(blocks)?.bits()),
            Order::Write { region, blocks, value } => {
                let region = GlobalAddr::from_bits(region);
                (0..blocks)
                    .try_for_each(|block| node.handle.write_word(region + block * node.block, value))
                    .map_err(failed)?;
                Event::Done
            }
            Order::Read { region, blocks, value } => {
                Event::Round(node.read(GlobalAddr::from_bits(region), blocks, Some(value))?)
            }
            Order::ReadFresh(blocks) => Event::Round(node.read_fresh(blocks)?),
            Order::ReadPaced { reads, every } => {
                Event::Round(node.read_paced(reads, Duration::from_nanos(every))?)
            }
            Order::Compute => {
                compute()?;
                Event::Done
            }
            Order::Exchange(_) | Order::ExchangeOfTwo(_) => {
                return Err("a node of a rack exchanges nothing bare".to_owned());
            }
        };
        teller.tell(event);
    }
}

struct Node {
    handle: NodeHandle,
    block: u64,
}

impl Node {
    fn allocate(&mut self, blocks: u64) -> Result<GlobalAddr, Reason> {
        self.handle.alloc(blocks * self.block, HOME, Discipline::Coherent).map_err(failed)
    }

    /// Reads blocks, one after the other.
    fn read(&mut self, region: GlobalAddr, blocks: u64, value: Option<u64>) -> Result<Samples, Reason> {
        let mut recorder = Recorder::new();
        let began = Instant::now();
        let mut last = began;
        for block in 0..blocks {
            let word = black_box(self.handle.read_word(region + block * self.block).map_err(failed)?);
            let now = Instant::now();
            recorder.record(now - last);
            last = now;
            if value.is_some_and(|value| value != word) {
                return Err(format!("read {word} where {value:?} was written: this is a bug in rackmem"));
            }
        }
        Ok(recorder.samples(last - began))
    }

    /// Reads blocks that nobody caches.
    fn read_fresh(&mut self, blocks: u64) -> Result<Samples, Reason> {
        let region = self.allocate(blocks)?;
        let samples = self.read(region, blocks, None)?;
        self.handle.free(region).map_err(failed)?;
        Ok(samples)
    }

    /// Reads blocks that nobody caches, one at every tick; what comes too late follows at once. Only the reads are timed,
    /// not how late they are.
    fn read_paced(&mut self, reads: u64, every: Duration) -> Result<Samples, Reason> {
        // Sleeps end when they should, and not up to 50 us later.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).map_err(failed)?;
        let mut recorder = Recorder::new();
        let mut next = Instant::now();
        let began = next;
        let mut left = reads;
        while left > 0 {
            let region = self.allocate(BATCH)?;
            for block in 0..left.min(BATCH) {
                let now = Instant::now();
                if next > now {
                    thread::sleep(next - now);
                }
                next += every;
                let asked = Instant::now();
                black_box(self.handle.read_word(region + block * self.block).map_err(failed)?);
                recorder.record(asked.elapsed());
            }
            left -= left.min(BATCH);
            self.handle.free(region).map_err(failed)?;
        }
        Ok(recorder.samples(began.elapsed()))
    }
}

/// Computes on every core, for ever.
pub(in crate::bench) fn compute() -> Result<(), Reason> {
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

fn failed(error: impl std::fmt::Display) -> Reason {
    format!("an access of the benchmark failed: {error}")
}
