//! A node of a rack with copies, and what the command asks of it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rackmem::{Chains, ChainsConfig, Discipline, GlobalAddr, NodeHandle, NodeId, NodeReport};
use random::Random;
use serde::{Deserialize, Serialize};

use super::HOME;
use crate::bench::nodes::{Node, Obeyed, Work, answer};
use crate::bench::samples::Recorder;

/// Bytes of a lock's data.
pub(super) const LOCKED: usize = 1 << 10;

/// Bytes of a value in a store: with its head, a KiB.
pub(super) const VALUE: usize = 1000;

/// What the command wants of a node.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// So much memory with copies, near that node. Answers where.
    Allocate { bytes: u64, near: u16 },
    /// So much memory without. Answers where.
    AllocatePlain { bytes: u64 },
    /// Write a word of this block, and sync. Answers `Samples` of that.
    Write { block: u64, value: u64, sync: bool },
    /// Read it, which must be this. Answers `Samples`.
    Read { block: u64, value: u64 },
    /// Make a lock over [`LOCKED`] bytes at [`HOME`]. Answers where.
    MakeLock { copies: bool },
    /// Take it to write, and count in its data up to this. Answers `Samples`.
    Lock { lock: u64, value: u64 },
    /// Write so many bytes from here on, and sync.
    Fill { from: u64, bytes: u64 },
    /// From now on, a thread reads and writes words in so many blocks, most of them in every other one.
    Work { region: u64, blocks: u64 },
    /// A store of chains with copies in the memories of these two nodes, of so many bytes at each for each copy. Answers where.
    MakeStore { at: [u16; 2], bytes: u64 },
    /// Put these keys, with values of [`VALUE`] bytes.
    Put { store: u64, keys: Range<u64> },
    /// From now on, a thread gets and puts so many keys.
    WorkOnStore { store: u64, keys: u64 },
    /// Answers [`Looked`].
    Look,
}

/// How far a node is.
#[derive(Serialize, Deserialize)]
pub(crate) struct Looked {
    /// What its thread has done.
    pub(super) operations: u64,
    /// Bytes that came to it for missing copies; or that it has copied, and copies that are missing, of stores that it looks after.
    pub(super) refilled: u64,
    pub(super) recopied: u64,
    pub(super) missing: u64,
}

/// A node of a rack with copies.
pub(crate) struct Keeper {
    node: Node,
    handle: NodeHandle,
    operations: Arc<AtomicU64>,
}

impl Work for Keeper {
    const NAME: &'static str = "bench copies";
    type Setup = ();
    type Order = Order;

    fn new(node: Node, (): ()) -> Self {
        Self { handle: node.handle(), node, operations: Arc::default() }
    }

    fn obey(&mut self, order: Order) -> Obeyed {
        let handle = &mut self.handle;
        match order {
            Order::Allocate { bytes, near } => answer(handle.alloc_with_copies(bytes, NodeId(near))?.bits()),
            Order::AllocatePlain { bytes } => answer(handle.alloc(bytes, HOME, Discipline::Coherent)?.bits()),
            Order::Write { block, value, sync } => answer(Recorder::timed(1, |_| {
                handle.write_word(GlobalAddr::from_bits(block), value)?;
                if sync { handle.sync() } else { Ok(()) }
            })?),
            Order::Read { block, value } => answer(Recorder::timed(1, |_| {
                let read = handle.read_word(GlobalAddr::from_bits(block))?;
                assert_eq!(read, value, "what was written is read");
                Ok::<_, rackmem::Error>(())
            })?),
            Order::MakeLock { copies } => {
                handle.keep_copies(copies)?;
                let lock = handle.alloc(LOCKED as u64, HOME, Discipline::Locked)?;
                handle.keep_copies(false)?;
                answer(lock.bits())
            }
            Order::Lock { lock, value } => {
                let lock = handle.rwlock(GlobalAddr::from_bits(lock), LOCKED)?;
                answer(Recorder::timed(1, |_| {
                    let mut data = lock.write(handle)?;
                    let (first, _) = data.split_first_chunk_mut().expect("it is longer than a word");
                    assert_eq!(u64::from_le_bytes(*first) + 1, value, "nothing is missed");
                    *first = value.to_le_bytes();
                    Ok::<_, rackmem::Error>(())
                })?)
            }
            Order::Fill { from, bytes } => {
                let bytes = vec![1; usize::try_from(bytes).expect("it fits into memory")];
                handle.write(GlobalAddr::from_bits(from), &bytes)?;
                answer(handle.sync()?)
            }
            Order::Work { region, blocks } => {
                let (handle, operations) = (self.node.handle(), Arc::clone(&self.operations));
                let node = u64::from(self.node.id.0);
                thread::spawn(move || work(handle, (region, blocks), node, &operations));
                answer(())
            }
            Order::MakeStore { at, bytes } => {
                let homes = at.map(NodeId);
                let at_one = ChainsConfig::at(self.node.id, bytes);
                let config = ChainsConfig { homes: homes.into(), copies: homes.len(), ..at_one };
                answer(handle.chains(&config)?.addr().bits())
            }
            Order::Put { store, keys } => {
                let mut store = handle.chains_at(GlobalAddr::from_bits(store))?;
                for key in keys {
                    store.put(handle, key, &[1; VALUE])?;
                }
                answer(())
            }
            Order::WorkOnStore { store, keys } => {
                let mut handle = self.node.handle();
                let store = handle.chains_at(GlobalAddr::from_bits(store))?;
                let (node, operations) = (u64::from(self.node.id.0), Arc::clone(&self.operations));
                thread::spawn(move || work_on(handle, store, (node, keys), &operations));
                answer(())
            }
            Order::Look => {
                let reports = self.node.rack().reports();
                let sum = |of: fn(&NodeReport) -> u64| reports.iter().map(of).sum();
                answer(Looked {
                    operations: self.operations.load(Ordering::Relaxed),
                    refilled: sum(|report| report.refilled),
                    recopied: sum(|report| report.chains.bytes_recopied),
                    missing: sum(|report| report.chains.missing),
                })
            }
        }
    }
}

/// Until the process ends: half gets, half puts.
fn work_on(mut handle: NodeHandle, mut store: Chains, (node, keys): (u64, u64), operations: &AtomicU64) {
    let (mut random, mut found) = (Random::new(node), Vec::new());
    loop {
        let dice = random.bits();
        let key = (dice >> 8) % keys;
        if dice.is_multiple_of(2) {
            store.put(&mut handle, key, &[2; VALUE]).expect("it has copies");
        } else {
            let is_there = store.get(&mut handle, key, &mut found).expect("it has copies");
            assert!(is_there && found.len() == VALUE, "what was put is there");
        }
        operations.fetch_add(1, Ordering::Relaxed);
    }
}

/// One of so many operations is on any of the blocks; the others are on those of the node.
const ANY: u64 = 16;

/// Until the process ends. (If all blocks were anybody's, a node that has a core to itself would take them all, and the rate would say
/// who has had one.)
fn work(mut handle: NodeHandle, (region, blocks): (u64, u64), node: u64, operations: &AtomicU64) {
    let mut random = Random::new(node);
    let block = handle.block_size().bytes();
    loop {
        let dice = random.bits();
        let own = (dice >> 8) % (blocks / 2) * 2 + node % 2;
        let at = if (dice / 2).is_multiple_of(ANY) { (dice >> 8) % blocks } else { own };
        let addr = GlobalAddr::from_bits(region + at * block);
        let done = if dice.is_multiple_of(2) {
            handle.read_word(addr).map(drop)
        } else {
            handle.write_word(addr, dice)
        };
        done.expect("it has copies");
        operations.fetch_add(1, Ordering::Relaxed);
    }
}
