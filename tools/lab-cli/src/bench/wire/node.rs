//! A node of a rack over wires: it has memory that others use, or it uses memory of others; and it says what that took.

use std::fs;
use std::time::{Duration, Instant};

use rackmem::{Discipline, Error, GlobalAddr, NodeHandle};
use random::Random;
use serde::{Deserialize, Serialize};

use crate::bench::nodes::{Node, Obeyed, Work, answer};
use crate::bench::rounds::until;

/// What users do.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Use {
    /// Regions that all users share, one at each node that has memory.
    pub(super) shared: Vec<u64>,
    /// Such regions for this user alone.
    pub(super) own: Vec<u64>,
    /// Blocks of each region.
    pub(super) blocks: u64,
    /// Per cent of the accesses that are to what all share.
    pub(super) sharing: u64,
    /// Per cent of the accesses that read.
    pub(super) reads: u64,
    pub(super) millis: u64,
    pub(super) seed: u64,
}

/// What the command wants of a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make a region of so many blocks. Answers where.
    Allocate(u64),
    /// Access words of random blocks. Answers how many accesses there were in a second.
    Use(Use),
    /// Answers what the node has [`Taken`] until now.
    Tell,
}

/// What a node has taken of the network and of the processors since it began.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Taken {
    /// Messages that it sent or received.
    pub(super) messages: u64,
    /// Nanoseconds of processors, of all its threads.
    pub(super) processor_ns: u64,
}

impl Taken {
    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            messages: self.messages - before.messages,
            processor_ns: self.processor_ns - before.processor_ns,
        }
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            processor_ns: self.processor_ns + other.processor_ns,
        }
    }
}

/// A node that has memory, or uses it.
pub(crate) struct User {
    node: Node,
    handle: NodeHandle,
}

impl Work for User {
    const NAME: &'static str = "bench wire";
    type Setup = ();
    type Order = Order;

    fn new(node: Node, (): ()) -> Self {
        Self { handle: node.handle(), node }
    }

    fn obey(&mut self, order: Order) -> Obeyed {
        match order {
            Order::Allocate(blocks) => {
                let bytes = blocks * self.handle.block_size().bytes();
                answer(self.handle.alloc(bytes, self.node.id, Discipline::Coherent)?.bits())
            }
            Order::Use(how) => answer(self.use_for_a_while(&how)?),
            Order::Tell => {
                let counts = self.node.rack().transport_counts().unwrap_or_default();
                let processor_ns = processor_ns().ok_or("the kernel does not say what threads have taken")?;
                answer(Taken { messages: counts.sent + counts.received, processor_ns })
            }
        }
    }
}

impl User {
    fn use_for_a_while(&mut self, how: &Use) -> Result<f64, Error> {
        let block = self.handle.block_size().bytes();
        let handle = &mut self.handle;
        let done = until(Duration::from_millis(how.millis), [handle].into_iter(), |handle, stop| {
            let (mut random, mut count) = (Random::new(how.seed), 0_u64);
            let began = Instant::now();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let regions = if random.below(100) < how.sharing { &how.shared } else { &how.own };
                let region = GlobalAddr::from_bits(regions[random.below(regions.len() as u64) as usize]);
                let at = region + random.below(how.blocks) * block;
                if random.below(100) < how.reads {
                    handle.read_word(at)?;
                } else {
                    handle.write_word(at, count)?;
                }
                count += 1;
            }
            Ok::<_, Error>(count as f64 / began.elapsed().as_secs_f64())
        })?;
        Ok(done.into_iter().sum())
    }
}

/// Nanoseconds that threads of this process have been running.
fn processor_ns() -> Option<u64> {
    let ran = |thread: fs::DirEntry| {
        let said = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        said.split_whitespace().next()?.parse::<u64>().ok()
    };
    // One that ends at this moment is not counted.
    let threads = fs::read_dir("/proc/self/task").ok()?;
    threads.flatten().filter_map(ran).reduce(|sum, ran| sum + ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_take_of_the_processors_is_said_by_the_kernel() {
        let before = processor_ns().expect("Linux says it");
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {}
        assert!(processor_ns() > Some(before), "this thread ran");
    }
}
