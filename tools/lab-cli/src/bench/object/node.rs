//! A node, and what its readers and writers do: the same in every layout.
//!
//! What must always hold: every word of an object says which write it is of. So whoever is given a mix of two finds out; only
//! plain READs may be given one.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use apps::objects::{Layout, Sabres};
use lab::objects::stamp::{stamp, stamp_of};
use lab::objects::{Checksum, Lines, LockAndRead, Plain};
use rackmem::{Error, GlobalAddr, NodeHandle};
use serde::{Deserialize, Serialize};

use crate::bench::nodes::{Node, Obeyed, Work, answer};
use crate::bench::rounds::median;
use cli::processes::TransportKind;

/// How objects are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ObjectLayout {
    Plain,
    Sabre,
    Lines,
    Checksum,
    Lock,
}

impl ObjectLayout {
    /// In this order they take turns.
    pub(super) const ALL: [Self; 5] = [Self::Plain, Self::Sabre, Self::Lines, Self::Checksum, Self::Lock];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => Plain::NAME,
            Self::Sabre => Sabres::NAME,
            Self::Lines => Lines::NAME,
            Self::Checksum => Checksum::NAME,
            Self::Lock => LockAndRead::NAME,
        }
    }
}

/// How reads follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Mode {
    /// Which object is read next depends on what was read last.
    Blocking,
    /// It does not: the processor goes on with the next one when it likes.
    Pipelined,
    /// Each asks another machine, and is timed by itself.
    Far,
}

impl Mode {
    /// What there is to measure.
    pub(super) const fn of(transport: TransportKind) -> &'static [Self] {
        match transport {
            TransportKind::Udp => &[Self::Far],
            _ => &[Self::Blocking, Self::Pipelined],
        }
    }

    /// Reads between two looks at the clock.
    const fn batch(self) -> usize {
        if matches!(self, Self::Far) { 1 } else { 32 }
    }
}

/// Objects that were made.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
pub(crate) struct Made {
    kind: ObjectLayout,
    bytes: u64,
    objects: u64,
    addr: u64,
}

/// What the command wants of a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make objects that are at home here. Answers what was [`Made`].
    Make { kind: ObjectLayout, bytes: u64, objects: u64 },
    /// Let so many threads write them.
    Write(Made, u16),
    /// End that.
    Stop,
    /// Read them for so many milliseconds. Answers what was [`Found`].
    Read(Made, Mode, u64),
}

/// A node that has objects, or reads them.
pub(crate) struct Objects {
    node: Node,
    handle: NodeHandle,
    writing: Writers,
}

impl Work for Objects {
    const NAME: &'static str = "bench object";
    type Setup = ();
    type Order = Order;

    fn new(node: Node, (): ()) -> Self {
        Self { handle: node.handle(), node, writing: Writers::default() }
    }

    fn obey(&mut self, order: Order) -> Obeyed {
        let Self { node, handle, writing } = self;
        match order {
            Order::Make { kind, bytes, objects } => answer(Made::make(handle, kind, bytes, objects)?),
            Order::Write(made, writers) => {
                *writing = Writers::start(made, (0..writers).map(|_| node.handle()).collect());
                answer(())
            }
            Order::Stop => answer(writing.stop()?),
            Order::Read(made, mode, millis) => {
                answer(made.read(handle, mode, Duration::from_millis(millis))?)
            }
        }
    }
}

/// What a reader found.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
pub(crate) struct Found {
    /// Nanoseconds of a read, with what was read in vain; the median.
    pub(super) each: f64,
    /// Whole reads, and how long all took.
    pub(super) reads: u64,
    pub(super) nanos: u64,
    /// Attempts, of which the others were torn.
    pub(super) attempts: u64,
    /// Reads that were looked at, and those of them that were called whole and are a mix.
    pub(super) judged: u64,
    pub(super) mixed: u64,
}

/// Does something with the layout of a kind.
macro_rules! with_layout {
    ($kind:expr, $layout:ident => $action:expr) => {
        match $kind {
            ObjectLayout::Plain => {
                type $layout = Plain;
                $action
            }
            ObjectLayout::Sabre => {
                type $layout = Sabres;
                $action
            }
            ObjectLayout::Lines => {
                type $layout = Lines;
                $action
            }
            ObjectLayout::Checksum => {
                type $layout = Checksum;
                $action
            }
            ObjectLayout::Lock => {
                type $layout = LockAndRead;
                $action
            }
        }
    };
}

impl Made {
    /// Makes objects at their home.
    fn make(node: &mut NodeHandle, kind: ObjectLayout, bytes: u64, objects: u64) -> Result<Self, Error> {
        let (count, len) = (objects as usize, bytes as usize);
        let home = node.id();
        let addr = with_layout!(kind, L => <L as Layout>::create(node, count, len, home)?.addr());
        Ok(Self { kind, bytes, objects, addr: addr.bits() })
    }

    /// Reads at random for so long.
    fn read(&self, node: &mut NodeHandle, mode: Mode, lasts: Duration) -> Result<Found, Error> {
        with_layout!(self.kind, L => self.read_in::<L>(node, mode, lasts))
    }

    fn open<L: Layout>(&self, node: &mut NodeHandle) -> Result<L, Error> {
        L::open(node, GlobalAddr::from_bits(self.addr), self.bytes as usize)
    }

    #[inline(never)]
    fn read_in<L: Layout>(&self, node: &mut NodeHandle, mode: Mode, lasts: Duration) -> Result<Found, Error> {
        let objects: L = self.open(node)?;
        let (mut into, mut raw) = (vec![0; self.bytes as usize], Vec::new());
        let mut found = Found { each: 0.0, reads: 0, nanos: 0, attempts: 0, judged: 0, mixed: 0 };
        // Nobody but us knows that it is zero, if the next read has to wait for the last one.
        let depends = if mode == Mode::Blocking { black_box(0_u64) } else { 0 };
        let (mut times, mut random) = (Vec::new(), 1_u64);
        let began = Instant::now();
        while began.elapsed() < lasts {
            let batch = Instant::now();
            for _ in 0..mode.batch() {
                random = random.wrapping_add(u64::from(into[0]) & depends);
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let index = ((u128::from(random) * u128::from(self.objects)) >> 64) as usize;
                let mut vain = 0;
                while objects.try_read(node, index, black_box(&mut into), &mut raw)?.is_none() {
                    vain += 1;
                    if vain % 16 == 0 { thread::yield_now() } else { std::hint::spin_loop() }
                }
                found.attempts += vain + 1;
            }
            times.push(batch.elapsed().as_nanos() as f64 / mode.batch() as f64);
            found.judged += 1;
            found.mixed += u64::from(stamp_of(&into).is_err());
        }
        found.nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        found.reads = (times.len() * mode.batch()) as u64;
        found.each = median(times);
        Ok(found)
    }

    fn write_in<L: Layout>(
        &self,
        node: &mut NodeHandle,
        (writer, writers): (usize, usize),
        over: &AtomicBool,
    ) -> Result<(), Error> {
        let objects: L = self.open(node)?;
        let (mut bytes, mut raw) = (vec![0; self.bytes as usize], Vec::new());
        let mut turn = 0_u64;
        loop {
            for index in (writer..self.objects as usize).step_by(writers) {
                turn += 1;
                // Neighbours differ in every byte.
                stamp(&mut bytes, turn.wrapping_mul(0x0101_0101_0101_0101));
                objects.write(node, index, &bytes, &mut raw)?;
                if over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                // Or it would lose its core in the middle of a write as often as not, where there are fewer cores than threads.
                thread::yield_now();
            }
        }
    }
}

/// Threads that write.
#[derive(Default)]
struct Writers {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), Error>>>,
}

impl Writers {
    fn start(made: Made, handles: Vec<NodeHandle>) -> Self {
        let (over, count) = (Arc::<AtomicBool>::default(), handles.len());
        let threads = (0..)
            .zip(handles)
            .map(|(writer, mut node)| {
                let over = Arc::clone(&over);
                thread::spawn(move || {
                    with_layout!(made.kind, L => made.write_in::<L>(&mut node, (writer, count), &over))
                })
            })
            .collect();
        Self { over, threads }
    }

    /// They end, each with a whole object.
    fn stop(&mut self) -> Result<(), Error> {
        self.over.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut self.threads);
        threads.into_iter().try_for_each(|thread| thread.join().expect("a writer panicked"))
    }
}
