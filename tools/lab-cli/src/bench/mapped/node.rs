//! What the nodes of the benchmark are asked to do.

use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Instant;

use rackmem::{Discipline, GlobalAddr, Mapping, NodeHandle, NodeId};
use serde::{Deserialize, Serialize};

use super::bare;
use crate::bench::nodes::{Node, Obeyed, Work, answer};
use crate::bench::rounds::{Pair, shuffle, time_each};
use crate::bench::samples::Recorder;

/// Where memory is at home.
const HOME: NodeId = NodeId(1);
/// Words of a cache line: the chase visits one word of every line.
const LINE: usize = 8;

/// Dependent loads, independent loads, stores, atomics: a pair for each round.
pub(super) type Hits = [Vec<Pair>; 4];

/// What the command wants of a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Compare accesses to as many bytes. Answers [`Hits`].
    Hits { bytes: u64, accesses: u64, rounds: u64 },
    /// Allocate so many blocks. Answers where.
    Allocate(u64),
    /// Map so many blocks, in place of what was mapped before.
    Map { addr: u64, blocks: u64 },
    /// Store this through the pointer to each block.
    Store(u64),
    /// The same by calls, in other blocks.
    Write { addr: u64, blocks: u64, value: u64 },
    /// Load a word of each block through its pointer, which must be this. Answers nanoseconds of one.
    Load { value: u64, how: InWhich },
    /// The same by calls, in other blocks.
    Read { addr: u64, blocks: u64, value: u64 },
    /// Faults without a rack, in so many blocks. Answers [`bare::Samples`].
    Bare { blocks: u64, in_place: bool },
}

/// In which order blocks are loaded.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InWhich {
    /// One behind the other.
    Row,
    /// In some order.
    Random,
    /// In some order, a part of them by each of so many threads.
    AtOnce(usize),
}

/// A node that maps memory.
pub(crate) struct Mapper {
    handle: NodeHandle,
    rack: rackmem::Rack,
    mapping: Option<Mapping>,
    block: usize,
    bare: Option<bare::Bare>,
}

impl Work for Mapper {
    const NAME: &'static str = "bench mapped";
    type Setup = ();
    type Order = Order;

    fn new(node: Node, (): ()) -> Self {
        let handle = node.handle();
        Self {
            rack: node.rack().clone(),
            mapping: None,
            block: handle.block_size().len(),
            handle,
            bare: None,
        }
    }

    fn obey(&mut self, order: Order) -> Obeyed {
        match order {
            Order::Hits { bytes, accesses, rounds } => answer(self.hits(bytes, accesses, rounds)?),
            Order::Allocate(blocks) => {
                let len = blocks * self.block as u64;
                answer(self.handle.alloc(len, HOME, Discipline::Coherent)?.bits())
            }
            Order::Map { addr, blocks } => {
                self.mapping = None;
                let len = blocks as usize * self.block;
                self.mapping = Some(self.rack.map(GlobalAddr::from_bits(addr), len)?);
                answer(())
            }
            Order::Store(value) => {
                self.words().for_each(|word| word.store(value, Relaxed));
                answer(())
            }
            Order::Write { addr, blocks, value } => {
                for at in 0..blocks {
                    self.handle.write_word(self.at(addr, at), value)?;
                }
                answer(())
            }
            Order::Load { value, how } => {
                let mut words: Vec<&AtomicU64> = self.words().collect();
                if how != InWhich::Row {
                    shuffle(&mut words);
                }
                let threads = if let InWhich::AtOnce(threads) = how { threads } else { 1 };
                let began = Instant::now();
                let wrong = std::thread::scope(|scope| {
                    let load = |words: &[&AtomicU64]| {
                        words.iter().filter(|word| word.load(Relaxed) != value).count()
                    };
                    let (mine, others) = words.split_at(words.len() / threads);
                    let others: Vec<_> =
                        others.chunks(mine.len()).map(|words| scope.spawn(move || load(words))).collect();
                    let others = others.into_iter().map(|thread| thread.join().expect("it loads words"));
                    load(mine) + others.sum::<usize>()
                });
                if wrong > 0 {
                    return Err(format!("{wrong} words are not {value}").into());
                }
                answer(began.elapsed().as_nanos() as f64 / words.len() as f64)
            }
            Order::Read { addr, blocks, value } => {
                let mut order: Vec<u64> = (0..blocks).collect();
                shuffle(&mut order);
                answer(Recorder::timed(blocks, |at| {
                    let addr = self.at(addr, order[at as usize]);
                    let found = self.handle.read_word(addr).map_err(|error| error.to_string())?;
                    if found == value { Ok(()) } else { Err(format!("found {found}, not {value}")) }
                })?)
            }
            Order::Bare { blocks, in_place } => {
                let block = self.handle.block_size();
                let bare = match &mut self.bare {
                    Some(bare) => bare,
                    none => none.insert(bare::Bare::new(block, blocks, in_place)?),
                };
                answer(bare.measure())
            }
        }
    }
}

impl Mapper {
    fn at(&self, addr: u64, block: u64) -> GlobalAddr {
        GlobalAddr::from_bits(addr) + block * self.block as u64
    }

    /// The first word of each block.
    fn words(&self) -> impl Iterator<Item = &AtomicU64> {
        let mapping = self.mapping.as_ref().expect("mapped before");
        mapping.words().iter().step_by(self.block / 8)
    }

    fn hits(
        &mut self,
        bytes: u64,
        accesses: u64,
        rounds: u64,
    ) -> Result<Hits, Box<dyn std::error::Error + Send + Sync>> {
        let addr = self.handle.alloc(bytes, HOME, Discipline::Coherent)?;
        let mapping = self.rack.map(addr, bytes as usize)?;
        let mapped = mapping.words();
        let plain: Vec<AtomicU64> = mapped.iter().map(|_| AtomicU64::new(0)).collect();
        // Cache lines in random order, closed to a circle.
        let mut order: Vec<u64> = (0..(plain.len() / LINE) as u64).map(|line| line * LINE as u64).collect();
        shuffle(&mut order);
        for words in [&plain[..], mapped] {
            for (at, word) in order.iter().enumerate() {
                words[*word as usize].store(order[(at + 1) % order.len()], Relaxed);
            }
        }
        let mut figures = Hits::default();
        for round in 0..=rounds {
            let chases = [chase, sum, store, add].map(|access: fn(&[AtomicU64], u64) -> u64| {
                let time = |words: &[AtomicU64]| {
                    time_each(accesses, || _ = black_box(access(black_box(words), accesses)))
                };
                // In turns, and in both orders.
                if round % 2 == 0 {
                    let plain = time(&plain);
                    Pair(plain, time(mapped))
                } else {
                    let mapped = time(mapped);
                    Pair(time(&plain), mapped)
                }
            });
            // What was stored is no chase any more.
            for words in [&plain[..], mapped] {
                for (at, word) in order.iter().enumerate() {
                    words[*word as usize].store(order[(at + 1) % order.len()], Relaxed);
                }
            }
            if round > 0 {
                figures.iter_mut().zip(chases).for_each(|(figure, pair)| figure.push(pair));
            }
        }
        Ok(figures)
    }
}

/// Every address is the last value loaded.
fn chase(words: &[AtomicU64], steps: u64) -> u64 {
    (0..steps).fold(0, |at, _| words[at as usize].load(Relaxed))
}

/// Indices of a random walk over all words.
fn indices(words: &[AtomicU64], steps: u64) -> impl Iterator<Item = usize> {
    let mask = words.len() as u64 - 1;
    let mut state = 1_u64;
    (0..steps).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33 & mask) as usize
    })
}

fn sum(words: &[AtomicU64], steps: u64) -> u64 {
    indices(words, steps).fold(0, |sum, at| sum.wrapping_add(words[at].load(Relaxed)))
}

fn store(words: &[AtomicU64], steps: u64) -> u64 {
    indices(words, steps).zip(0..).for_each(|(at, step)| words[at].store(step, Relaxed));
    0
}

fn add(words: &[AtomicU64], steps: u64) -> u64 {
    indices(words, steps).fold(0, |sum, at| sum ^ words[at].fetch_add(1, SeqCst))
}
