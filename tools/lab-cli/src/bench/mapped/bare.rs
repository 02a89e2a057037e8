//! Faults and revocations of pages without a rack: the kernel's part, whoever resolves the fault, and nothing else.
//!
//! The pages are those that racks have ([`live::memory::pages`]); every block is there, and only the application's right is taken
//! away and given back.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use live::memory::pages::{Addresses, Faulted, MappedRange, Pages};
use live::memory::{NodeMemory, StoreOf, Unpinned};
use node::{Access, Reservation, Store};
use rackmem::{BlockSize, GlobalAddr, NodeId};
use serde::{Deserialize, Serialize};

use crate::bench::rounds::shuffle;
use crate::bench::samples::{Recorder, Samples as Times};

/// Where the pages lie: nowhere near those of the rack.
const BASE: u64 = 0x4400_0000_0000;
const ME: NodeId = NodeId(0);

/// What one round came to.
#[derive(Serialize, Deserialize)]
pub(super) struct Samples {
    /// A load that waits until it is let.
    pub(super) fault: Times,
    /// Nanoseconds to take a page out of the application's view, and as an agent does it, with all that is kept about it.
    pub(super) kernel_revokes_ns: f64,
    pub(super) agent_revokes_ns: f64,
}

pub(super) struct Bare {
    memory: Arc<NodeMemory>,
    range: MappedRange,
    block: BlockSize,
    blocks: u64,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Bare {
    pub(super) fn new(
        block: BlockSize,
        blocks: u64,
        in_place: bool,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let bytes = blocks * block.bytes();
        let memory = Arc::new(NodeMemory::new(block, bytes, bytes));
        let addresses = Addresses::reserve(BASE, 1, ME)?.with_faults_in_place(in_place);
        memory.map(&addresses, Instant::now())?;
        let range = MappedRange::open(pages(&memory), GlobalAddr::new(ME, 0), bytes as usize);
        let range = range.map_err(|why| format!("{why:?}"))?;
        let mut store = StoreOf::alone(&memory, ME, transport::Contents::None);
        for tag in range.blocks() {
            let Reservation::Reserved(frame) = store.reserve(tag, |_| false) else {
                return Err("a page for each block".into());
            };
            store.fill(frame, store.home_contents(tag));
            store.publish(frame, tag, Access::Modified, false);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (served, stopped) = (Arc::downgrade(&memory), Arc::clone(&stop));
        let mut threads = Vec::new();
        if in_place {
            pages(&memory).resolve_in_place(move |faulted| {
                served.upgrade().iter().for_each(|memory| resolve(memory, faulted));
            });
        } else {
            threads.push(std::thread::spawn(move || wait_for_faults(&served, &stopped)));
        }
        Ok(Self { memory, range, block, blocks, stop, threads })
    }

    pub(super) fn measure(&mut self) -> Samples {
        let mut order: Vec<u64> = (0..self.blocks).collect();
        shuffle(&mut order);
        let (words, step) = (self.range.words(), self.block.words());
        let load = |at: u64| {
            std::hint::black_box(words[order[at as usize] as usize * step].load(Relaxed));
            Ok::<(), std::convert::Infallible>(())
        };
        let pages = pages(&self.memory);
        let began = Instant::now();
        pages.suspend();
        let kernel_revokes_ns = began.elapsed().as_nanos() as f64 / self.blocks as f64;
        pages.resume();
        let Ok(fault) = Recorder::timed(self.blocks, load);
        pages.end_holds();
        let mut store = StoreOf::alone(&self.memory, ME, transport::Contents::None);
        let mut took = Duration::ZERO;
        for tag in self.range.blocks() {
            let (frame, _) = store.lookup(tag).expect("it is there");
            // The other thread lets go of the page right after it has let this one go on.
            took += loop {
                let began = Instant::now();
                if store.withdraw(frame).is_ok() {
                    break began.elapsed();
                }
            };
            store.publish(frame, tag, Access::Modified, false);
        }
        // The next round takes something away.
        let Ok(_) = Recorder::timed(self.blocks, load);
        pages.end_holds();
        Samples { fault, kernel_revokes_ns, agent_revokes_ns: took.as_nanos() as f64 / self.blocks as f64 }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        pages(&self.memory).ring();
        for thread in self.threads.drain(..) {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

fn pages(memory: &NodeMemory) -> &Arc<Pages> {
    memory.pages().expect("they were made")
}

/// Lets whoever waits go on.
fn resolve(memory: &Arc<NodeMemory>, faulted: &Faulted) {
    let mut store = StoreOf::alone(memory, ME, transport::Contents::None);
    let (frame, _) = store.lookup(memory.cache.block_size().tag(faulted.addr)).expect("it is there");
    if store.pin(frame).is_ok() {
        let pinned = memory.adopt(frame);
        pages(memory).grant(&pinned, None);
        let _: Unpinned = pinned.unpin(false);
    }
}

fn wait_for_faults(memory: &Weak<NodeMemory>, stop: &AtomicBool) {
    let Some(memory) = memory.upgrade() else { return };
    while !stop.load(Relaxed) {
        pages(&memory).faulted().iter().for_each(|faulted| resolve(&memory, faulted));
        pages(&memory).wait(Duration::from_millis(100));
    }
}
