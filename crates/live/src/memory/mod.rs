//! The memory of live nodes: the concurrent cache that application threads hit in, the home memory, and the
//! copies kept for repeated answers.
//!
//! Runs on every server of a live rack. The protocol machines of a node reach it through [`StoreOf`], one at
//! a time, under the lock of their actor; application threads hit in [`Cache`] beside them, with no lock and
//! without entering a machine. Everything but `huge_pages`, `regions/held` and five files of `pages` is safe code: blocks are arrays of
//! atomic words, and whoever raced with a revocation finds out from the frame's word.
//!
//! | file | holds |
//! | --- | --- |
//! | `cache` | the set-associative cache: its shape, and finding a block in it |
//! | `frame_word` | what is kept per frame, and the layout of its word |
//! | `hints` | where a handle found its blocks last |
//! | `read_hit`, `write_hit`, `pinned` | what application threads do |
//! | `agent` | what the machines do with a frame |
//! | `lru` | which block has to go |
//! | `home`, `retained` | the node's own memory; answers that outlive their frame |
//! | [`pages`] | mapped memory: blocks that applications reach through pointers |
//! | [`locks`] | copies of what locks guard, and their gates |
//! | [`regions`] | regions that threads change where they are, of the home memory or shared by processes: words, objects |
//! | `data_ref` | how contents anywhere in the rack are named |
//! | `store_of` | [`node::Store`] on top of it all |
//!
//! # What must always hold
//! 1. A read hit returns a word that the block held while this node could read it, never a word of another
//!    block and never half of a block-wide write.
//! 2. A write that was not refused is in the contents that the agent finds after [`node::Store::withdraw`] or
//!    [`node::Store::downgrade`].
//! 3. A refusal with [`node::Pinned`] is followed by one [`Unpinned::AgentWaits`], not more, and until the
//!    agent's turn no thread gets in (but see [`Unpinned::AgentWaits`] for an agent that does not come).
//!
//! # Why this is so: the order of memory accesses
//! `word` stands for a frame's word (`frame_word`), `data` for the words of its block.
//!
//! **Writers of data.** Three kinds of stores go to `data`, each after a change of `word` and a release
//! fence: a pinning thread sets the writer bit, fences, stores, and clears the bit with a releasing
//! operation; an agent ends a generation (withdraw), fences, and fills; the thread that adopts a pin fences
//! before it stores.
//!
//! **A word's read hit** loads `data` with acquire ordering and then `word`. If the value came from a store
//! made since the generation in the hint began, that store's fence synchronizes with the load, so `word` is
//! seen with the writer bit, or at a later generation, or after the write was complete. The first two fail
//! the comparison. In the third the value is that of a complete write, and as `word` is loaded with acquire
//! ordering too, the thread sees the rest of that write in all its reads from now on. If the value is older
//! than such stores, the load took place before them, and so did the read. The hint itself was made from an
//! acquiring load of `word` in this generation, so nothing older than the block's publication can be seen.
//! Nothing needs to be looked at *before* the data: a wrong hint fails the comparison like an old one.
//!
//! **An inspection** is a sequence lock's read: the count of writes (acquire), the data, an acquire fence,
//! then `word` and the count again. The fence pairs with the writers' fences: data from a write in flight
//! makes the writer bit visible, or, when the write is over by then, its count, which is raised before the
//! bit is cleared. The first load of the count acquires what the write that raised it stored. (`word` is
//! looked at before the data, too, but only to save a vain run.)
//!
//! **A write hit** validates everything and gets exclusive access in one compare-and-swap of `word`, which
//! acquires the stores of whoever had the frame before. Agents change `word` by compare-and-swap and never
//! while the writer bit is set, so 2 holds: a withdrawal comes before the write, which then fails, or after
//! its release.
//!
//! **A tag** changes only in a reserved frame, after a release fence. A probe reads it (acquire) after the
//! word: if the tag is newer than the word's generation, the later comparison with `word` fails.
//!
//! **Store, then load elsewhere.** The operations on `word` and the loads of the hit path are sequentially
//! consistent, so that a thread's read hit is not performed before its earlier write hit. On x86-64 that
//! costs nothing: a locked operation is needed anyway, and such a load is a plain move.

mod agent;
mod cache;
mod data_ref;
mod frame_word;
mod hints;
mod home;
#[cfg(target_os = "linux")]
mod huge_pages;
pub mod locks;
mod lru;
pub mod pages;
mod pinned;
mod read_hit;
pub mod regions;
mod retained;
mod store_of;
mod wait;
mod words;
mod write_hit;

pub use cache::Cache;
pub use hints::Hints;
pub use home::HomeMemory;
pub use pinned::{PinnedFrame, Unpinned};
pub use retained::Retained;
pub use store_of::{StoreOf, contents_of};
pub(crate) use words::copy_contents;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use node::FrameId;
use wire::{BlockSize, NodeId};

use frame_word::FrameMeta;
use pages::{Addresses, Pages, Refused};

/// Memories with copies, of which a node keeps some.
#[derive(Default)]
struct Copied {
    /// The id of the first.
    first: usize,
    memories: Box<[OnceLock<HomeMemory>]>,
}

/// All the memory of one node.
pub struct NodeMemory {
    /// Blocks cached here. Shared, so that an application's handle can hold the cache itself: a hit then goes
    /// straight to it.
    pub cache: Arc<Cache>,
    /// Blocks in ranges that are mapped here: from the first mapping on.
    pages: OnceLock<Arc<Pages>>,
    /// Blocks whose home is here.
    pub home: HomeMemory,
    /// Memories with copies: those that this node keeps are made when it first has something of them.
    copied: Copied,
    /// Answers that outlived their frames.
    pub retained: Retained,
    /// Copies of what locks guard.
    pub locks: locks::LockCopies,
    /// Regions of the home memory for one-sided operations.
    pub regions: regions::Regions,
}

impl NodeMemory {
    /// A node with an empty cache of `cache_bytes` and `home_bytes` of zeroed memory of its own. Physical
    /// memory is used as blocks are first written. What locks guard gets capacity beside the cache, an eighth of it.
    ///
    /// # Panics
    /// If a cache of this size would have 2^32 frames or more.
    pub fn new(block: BlockSize, cache_bytes: u64, home_bytes: u64) -> Self {
        Self {
            cache: Arc::new(Cache::new(block, cache_bytes)),
            pages: OnceLock::new(),
            home: HomeMemory::new(block, home_bytes),
            copied: Copied::default(),
            retained: Retained::new(block),
            locks: locks::LockCopies::new(cache_bytes / 8),
            regions: regions::Regions::default(),
        }
    }

    /// The same with so many bytes for copies of what locks guard.
    #[must_use]
    pub fn with_lock_copies(self, bytes: u64) -> Self {
        Self { locks: locks::LockCopies::new(bytes), ..self }
    }

    /// The same in a rack with so many memories with copies, whose ids begin there; each is as large as the node's own.
    #[must_use]
    pub fn with_copies(self, first: usize, memories: usize) -> Self {
        let copied = Copied { first, memories: (0..memories).map(|_| OnceLock::new()).collect() };
        Self { copied, ..self }
    }

    /// The memory with this id, of the node `me`; and which of its memories it is, from 0 on: its own.
    ///
    /// # Panics
    /// If the node has no such memory.
    fn home_of(&self, memory: NodeId, me: NodeId) -> (&HomeMemory, usize) {
        let Copied { first, memories } = &self.copied;
        match memory.index().checked_sub(*first) {
            Some(nth) if nth < memories.len() => (self.copied_home(nth), 1 + nth),
            _ => {
                assert_eq!(memory, me, "memory {} is elsewhere", memory.0);
                (&self.home, 0)
            }
        }
    }

    fn copied_home(&self, nth: usize) -> &HomeMemory {
        self.copied.memories[nth].get_or_init(|| HomeMemory::new(self.cache.block_size(), self.home.bytes()))
    }

    /// From now on ranges can be mapped, at these addresses: as much of them is cached as in the cache. To be called under the
    /// lock of the node's actor, whose clock began then.
    ///
    /// # Errors
    /// If the kernel does not provide what that takes; with the addresses, for another attempt.
    ///
    /// # Panics
    /// If it was called before.
    pub fn map(&self, addresses: &Addresses, started: Instant) -> Result<(), Refused> {
        let (block, frames) = (self.cache.block_size(), self.cache.frames());
        let pages = Pages::new(addresses, block, u64::from(frames) << block.shift(), (frames, started))?;
        assert!(self.pages.set(Arc::new(pages)).is_ok(), "pages are made once");
        Ok(())
    }

    /// Mapped memory, once there is some.
    pub fn pages(&self) -> Option<&Arc<Pages>> {
        self.pages.get()
    }

    /// The pages and the slot there, if the frame is a page.
    fn page(&self, frame: FrameId) -> Option<(&Pages, usize)> {
        let pages = self.pages.get()?;
        Some((pages, pages.index(frame)?))
    }

    /// What is kept about a frame, and its words.
    fn frame(&self, frame: FrameId) -> (&FrameMeta, &[AtomicU64]) {
        match self.page(frame) {
            Some((pages, slot)) => (pages.meta(slot), pages.words(slot)),
            None => (self.cache.meta(frame), self.cache.words(frame)),
        }
    }

    /// Takes over a frame that an agent pinned on behalf of this thread ([`node::Store::publish`],
    /// [`node::Store::pin`], [`node::Store::upgrade`]). Each such pin is adopted once.
    ///
    /// # Panics
    /// If the frame is not pinned.
    pub fn adopt(&self, frame: FrameId) -> PinnedFrame<'_> {
        let (meta, words) = self.frame(frame);
        PinnedFrame::adopt(frame, meta, words)
    }
}
