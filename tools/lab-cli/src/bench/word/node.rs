//! A node, and what its thread does with words of another node, and with bare ones.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rackmem::{Error, GlobalAddr, NodeHandle, Pending, WordOperation, Words};
use serde::{Deserialize, Serialize};

use crate::bench::miss::compute;
use crate::bench::nodes::{Node, Obeyed, Work, answer};
use crate::bench::samples::{Recorder, Samples};

/// Operations between two looks at the clock, where single ones are not timed.
const CHUNK: u64 = 256;

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    /// Waited for, each by itself.
    FetchAdd,
    /// The same.
    CompareExchange,
    /// The same.
    Load,
    /// Many in flight, of each of which it is known in the end what the word was.
    Post,
    /// Many in flight that fetch nothing, and a flush.
    Add,
}

impl Operation {
    pub(crate) const ALL: [Self; 5] =
        [Self::FetchAdd, Self::CompareExchange, Self::Load, Self::Post, Self::Add];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FetchAdd => "fetch_add",
            Self::CompareExchange => "compare_exchange",
            Self::Load => "load",
            Self::Post => "post fetch_add, wait",
            Self::Add => "add, flush",
        }
    }

    pub(crate) const fn is_blocking(self) -> bool {
        matches!(self, Self::FetchAdd | Self::CompareExchange | Self::Load)
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RunOrder {
    pub(super) operation: Operation,
    /// All on one word.
    pub(super) hot: bool,
    /// On bare words of the thread's own process.
    pub(super) bare: bool,
    /// Each operation is timed by itself.
    pub(super) timed: bool,
    pub(super) in_flight: u64,
    pub(super) millis: u64,
}

/// Where the words are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct WordLocations {
    adds: u64,
    /// Words that stay zero.
    zeroes: u64,
    count: u64,
}

impl WordLocations {
    /// Allocates them at home here.
    fn make(handle: &mut NodeHandle, count: u64) -> Result<Self, Error> {
        let home = handle.id();
        let mut words = || handle.words::<u64>(count as usize, home).map(|words| words.addr().bits());
        Ok(Self { adds: words()?, zeroes: words()?, count })
    }
}

/// What the command wants of a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Allocate so many words here. Answers their [`WordLocations`].
    Make(u64),
    /// These are the words; and whether there have to be words of one's own to compare with.
    Open(WordLocations, bool),
    /// Operate on them. Answers what was [`Done`].
    Run(RunOrder),
    /// Do one so many times, on the first word, for a program that counts instructions.
    Count(Operation, u64),
    /// Answer what all of them add up to.
    Sum,
    /// Compute on every core from now on.
    Compute,
}

/// A node and, once they are there, the words.
pub(crate) struct Operating {
    node: Node,
    mine: Option<Mine>,
}

/// What a thread has done.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(super) operations: u64,
    pub(super) nanos: u64,
    /// What this added to words of the rack.
    pub(super) added: u64,
    pub(super) samples: Option<Samples>,
}

impl Done {
    pub(super) fn per_second(&self) -> f64 {
        self.operations as f64 / (self.nanos as f64 / 1e9).max(1e-9)
    }
}

impl Work for Operating {
    const NAME: &'static str = "bench word";
    type Setup = ();
    type Order = Order;

    fn new(node: Node, (): ()) -> Self {
        Self { node, mine: None }
    }

    fn obey(&mut self, order: Order) -> Obeyed {
        match (order, &mut self.mine) {
            (Order::Make(count), _) => answer(WordLocations::make(&mut self.node.handle(), count)?),
            (Order::Open(place, bare), mine) => {
                *mine = Some(Mine::new(self.node.handle(), &place, bare)?);
                answer(())
            }
            (Order::Run(order), Some(mine)) => answer(mine.run(&order)?),
            (Order::Count(operation, times), Some(mine)) => {
                answer(mine.counted_operations(operation, times)?)
            }
            (Order::Sum, Some(mine)) => answer(mine.sum()?),
            (Order::Compute, _) => answer(compute()?),
            (Order::Run(_) | Order::Count(..) | Order::Sum, None) => Err("no words were opened".into()),
        }
    }
}

/// A thread with the words.
struct Mine {
    handle: NodeHandle,
    words: Words<u64>,
    zeroes: Words<u64>,
    count: u64,
    bare: Vec<AtomicU64>,
    pending: Vec<Pending<u64>>,
    state: u64,
}

/// By which name callgrind knows the function that does operations for it to count.
pub(crate) fn counted_name() -> String {
    format!("{}::counted_operations", std::any::type_name::<Mine>())
}

impl Mine {
    /// `bare`: with words of its own to compare with.
    fn new(mut handle: NodeHandle, place: &WordLocations, bare: bool) -> Result<Self, Error> {
        let words = handle.words_at(GlobalAddr::from_bits(place.adds))?;
        let zeroes = handle.words_at(GlobalAddr::from_bits(place.zeroes))?;
        let state = 0x9e37_79b9_7f4a_7c15 + u64::from(handle.id().0);
        let bare = (0..if bare { place.count } else { 0 }).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { handle, words, zeroes, count: place.count, bare, pending: Vec::new(), state })
    }

    /// One of the words at random, or the first.
    fn choose(&mut self, hot: bool) -> usize {
        // Short: it is in what is measured.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        if hot { 0 } else { ((u128::from(self.state) * u128::from(self.count)) >> 64) as usize }
    }

    fn run(&mut self, order: &RunOrder) -> Result<Done, Error> {
        let done = match (order.bare, order.operation) {
            (false, Operation::FetchAdd) => self.one_by_one(order, |mine, at| {
                black_box(mine.words.fetch_add(&mut mine.handle, at, 1)?);
                Ok(())
            }),
            (false, Operation::CompareExchange) => self.one_by_one(order, |mine, at| {
                let swapped = mine.zeroes.compare_exchange(&mut mine.handle, at, 0, 0)?;
                assert!(swapped.is_ok(), "a word that nobody changes has changed: a bug");
                Ok(())
            }),
            (false, Operation::Load) => self.one_by_one(order, |mine, at| {
                black_box(mine.words.load(&mut mine.handle, at)?);
                Ok(())
            }),
            (false, Operation::Post) => {
                let post = |mine: &mut Self, at: usize| {
                    let pending = mine.words.post(&mut mine.handle, at, WordOperation::Add(1))?;
                    mine.pending.push(pending);
                    Ok(())
                };
                self.many(order, order.in_flight, post, |mine| {
                    for pending in mine.pending.drain(..) {
                        black_box(pending.wait(&mut mine.handle)?);
                    }
                    mine.handle.flush()
                })
            }
            (false, Operation::Add) => self.many(
                order,
                order.in_flight,
                |mine, at| mine.words.add(&mut mine.handle, at, 1),
                |mine| mine.handle.flush(),
            ),
            (true, Operation::CompareExchange) => self.one_by_one(order, |mine, at| {
                let word = &mine.bare[at];
                let found = word.load(Ordering::Relaxed);
                black_box(word.compare_exchange(found, found, Ordering::SeqCst, Ordering::SeqCst)).ok();
                Ok(())
            }),
            (true, Operation::Load) => self.one_by_one(order, |mine, at| {
                black_box(mine.bare[at].load(Ordering::SeqCst));
                Ok(())
            }),
            (true, Operation::FetchAdd | Operation::Post | Operation::Add) => {
                self.one_by_one(order, |mine, at| {
                    black_box(mine.bare[at].fetch_add(1, Ordering::SeqCst));
                    Ok(())
                })
            }
        }?;
        let adds = matches!(order.operation, Operation::FetchAdd | Operation::Post | Operation::Add);
        Ok(Done { added: if adds && !order.bare { done.operations } else { 0 }, ..done })
    }

    /// So many on the first word. Callgrind counts what is in here, and knows it by its name.
    #[inline(never)]
    fn counted_operations(&mut self, operation: Operation, times: u64) -> Result<(), Error> {
        // So many to a run that the loop is hardly counted.
        macro_rules! eight {
            ($operation:expr) => {{
                (
                    $operation, $operation, $operation, $operation, $operation, $operation, $operation,
                    $operation,
                )
            }};
        }
        assert!(times.is_multiple_of(8), "operations are counted in eights, not {times}");
        match operation {
            Operation::FetchAdd => {
                for _ in 0..times / 8 {
                    eight!(black_box(self.words.fetch_add(&mut self.handle, 0, 1)?));
                }
            }
            Operation::Add => {
                for _ in 0..times / 8 {
                    eight!(self.words.add(&mut self.handle, 0, 1)?);
                }
            }
            _ => unreachable!("nobody asks for the instructions of {operation:?}"),
        }
        self.handle.flush()
    }

    #[inline]
    fn one_by_one(
        &mut self,
        order: &RunOrder,
        one: impl Fn(&mut Self, usize) -> Result<(), Error>,
    ) -> Result<Done, Error> {
        if !order.timed {
            return self.many(order, CHUNK, one, |_| Ok(()));
        }
        let (lasts, hot) = (Duration::from_millis(order.millis), order.hot);
        let mut recorder = Recorder::new();
        let began = Instant::now();
        let mut last = began;
        let mut operations = 0;
        while last - began < lasts {
            let at = self.choose(hot);
            one(self, at)?;
            let now = Instant::now();
            recorder.record(now - last);
            last = now;
            operations += 1;
        }
        let samples = recorder.samples(last - began);
        Ok(Done { operations, nanos: nanos(last - began), added: 0, samples: Some(samples) })
    }

    #[inline]
    fn many(
        &mut self,
        order: &RunOrder,
        chunk: u64,
        one: impl Fn(&mut Self, usize) -> Result<(), Error>,
        wait: impl Fn(&mut Self) -> Result<(), Error>,
    ) -> Result<Done, Error> {
        let (lasts, hot) = (Duration::from_millis(order.millis), order.hot);
        let began = Instant::now();
        let mut operations = 0;
        loop {
            for _ in 0..chunk {
                let at = self.choose(hot);
                one(self, at)?;
            }
            wait(self)?;
            operations += chunk;
            let took = began.elapsed();
            if took >= lasts {
                return Ok(Done { operations, nanos: nanos(took), added: 0, samples: None });
            }
        }
    }

    /// What all words add up to.
    fn sum(&mut self) -> Result<u64, Error> {
        (0..self.count as usize).map(|at| self.words.load(&mut self.handle, at)).sum()
    }
}

fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}
