//! Mapped memory: blocks that applications reach through pointers.
//!
//! Runs on a server whose process has joined a rack of processes. Blocks of a mapped range live here and not in the
//! [cache](super::cache::Cache): each in its place of one sparse file, which the application sees through the processor's page
//! tables. The machines see pages as frames, numbered behind those of the cache ([`super::StoreOf`]).
//!
//! | file | holds |
//! | --- | --- |
//! | `views` | the file and its two views |
//! | `userfault` | the kernel's side of a fault |
//! | `table` | which page has which block; who goes, who waits |
//! | `agent` | what the machines do with a page |
//! | `grant` | what is done for a thread that waits in a fault |
//! | `hold` | how long a granted page stays |
//! | `in_place` | faults that the thread resolves which has them |
//! | `range` | the ranges that are mapped |
//! | `guarded` | ranges that a lock guards: pages of this process, while it is held |
//! | `run` | blocks that are used one behind the other |
//! | `counts` | what is counted |
//! | `refused` | why there is no mapped memory |
//! | `last_words` | what a process says that ends because of an access |
//! | `signals` | handlers for some addresses alone |
//!
//! # What must always hold
//! 1. What the processor lets the application do with a page (`Right`) is never more than what the node may do with the
//!    block: a right is given after the page is published, and taken before the answer that says so is sent.
//! 2. While a thread has a page pinned by a call, or an agent reads it, the application cannot write in it: pinning takes the
//!    right to write first. So no store is lost, and whoever copies a pinned page sees one moment.
//! 3. A page that was granted stays for [`Pages::HOLD`] or longer: agents are refused until then, and told when it is over
//!    ([`Pages::due`]). An access through a pointer reports no end; without a hold two nodes could take a page from each
//!    other for ever, before either has used it.
//! 4. Rights are changed by whoever holds the lock of the node's actor, or has the page pinned. These two exclude each other,
//!    but when the node's lease has run out: then all rights are taken away, of pinned pages, too. So a change of one right is
//!    under a lock of its own, and nothing is granted until the lease holds again. Under that lock alone the right to write
//!    is taken ahead from pages that are not held, nor kept by the application: it gets that back when it writes.
//!
//! # Why this is a memory model
//! A block is writable on one node, and then readable on no other: the protocol grants a write when every other copy is
//! withdrawn. Taking a right is a change of page tables that ends on all processors before the call returns: every access that
//! was under way has been performed by then. So all accesses through pointers are ordered as on one machine, and a program has
//! the memory model of its language, atomics included, across any pages.

mod agent;
mod counts;
mod grant;
mod guarded;
mod hold;
mod in_place;
mod last_words;
mod range;
mod refused;
mod run;
mod signals;
mod table;
mod userfault;
mod views;

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use node::FrameId;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use wire::addr::OFFSET_BITS;
use wire::{BlockSize, BlockTag, GlobalAddr, Nanos, NodeId};

pub use self::counts::MappedCounts;
pub use self::grant::Faulted;
pub use self::guarded::GuardedRange;
use self::hold::Hold;
pub use self::range::{BadRange, MappedRange};
pub use self::refused::Refused;
pub use self::run::Run;
use self::table::Table;
pub use self::views::PAGE;
use self::views::{Reserved, Views};
use super::frame_word::FrameMeta;

/// Where the rack's memory lies in every process, unless they agree on something else: nothing else takes this range.
pub const DEFAULT_BASE: u64 = 0x2000_0000_0000;
/// Log of the bytes that a memory may have to be mapped: 512 GiB. 64 of them lie side by side.
const NODE_SHIFT: u32 = 39;

/// The addresses at which a process maps the rack's memory, reserved when it joins.
#[derive(Clone)]
pub struct Addresses {
    reserved: Arc<Reserved>,
    in_place: bool,
}

impl Addresses {
    /// Reserves them, for a rack of so many memories.
    ///
    /// # Errors
    /// If something has a part of them.
    pub fn reserve(base: u64, memories: usize, whom: NodeId) -> Result<Self, Refused> {
        let start = usize::try_from(base).ok().filter(|start| *start > 0 && start.is_multiple_of(1 << 30));
        let start = start.ok_or(Refused::Base { base })?;
        let reserved = Reserved::new(start, memories << NODE_SHIFT, format!("node {}", whom.0))?;
        Ok(Self { reserved: Arc::new(reserved), in_place: false })
    }

    /// Where this address of the rack lies in every process; None if its node's memory is too large for that.
    pub fn pointer_to(&self, addr: GlobalAddr) -> Option<usize> {
        offset_of(addr, self.reserved.len() >> NODE_SHIFT).map(|offset| self.reserved.start() + offset)
    }

    /// The address of the rack that this is in every process.
    pub fn addr_of(&self, pointer: usize) -> Option<GlobalAddr> {
        self.reserved.offset(pointer).map(addr_at)
    }

    /// Whether faults there are resolved by the threads that have them, in a handler of SIGBUS, and not by one that waits for
    /// them.
    #[must_use]
    pub fn with_faults_in_place(self, in_place: bool) -> Self {
        Self { in_place, ..self }
    }
}

/// Whether the system lets this process resolve faults.
///
/// # Errors
/// Why not.
pub fn can_map() -> Result<(), Refused> {
    userfault::Userfault::open(false).map(drop)
}

/// Blocks of this size are whole pages of this machine.
fn are_pages(block: BlockSize) -> Result<(), Refused> {
    let page = rustix::param::page_size();
    if page == PAGE && block.len() >= PAGE { Ok(()) } else { Err(Refused::Blocks { block, page }) }
}

/// What the processor lets the application do with a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
enum Right {
    /// Every access faults.
    None,
    /// A store faults.
    Read,
    Write,
}

/// The pages of one node.
pub struct Pages {
    views: Views,
    block: BlockSize,
    memories: usize,
    /// The frame that is the first page.
    first: u32,
    slots: Box<[Slot]>,
    table: Mutex<Table>,
    /// Held while a right is changed. True while nothing is granted.
    suspended: Mutex<bool>,
    /// Pages that agents have taken the right to write from, lately.
    stopped: Mutex<Run>,
    /// When the next hold is over that an agent waits for: `table.waiting` has it.
    deadline: AtomicU64,
    /// Rings then, for the thread that resolves faults: no other one may be awake.
    alarm: OwnedFd,
    /// Pages that the application has pinned.
    pinned: AtomicUsize,
    /// The node's clock began then.
    started: Instant,
    in_place: bool,
    counters: counts::Counters,
}

/// A page, or space for one.
#[derive(Default)]
struct Slot {
    meta: FrameMeta,
    /// Its block, from when it is reserved.
    tag: AtomicU64,
    /// A [`Right`].
    right: AtomicU8,
    hold: Hold,
    /// Which word of it was waited for.
    word: AtomicU64,
    /// Who was told last that the access is allowed by now.
    told: AtomicU64,
    /// It may be missing in the application's view all the same.
    is_doubtful: AtomicBool,
    /// The application has it pinned, until it says otherwise.
    is_kept: AtomicBool,
}

impl Slot {
    fn right(&self) -> Right {
        match self.right.load(Acquire) {
            0 => Right::None,
            1 => Right::Read,
            _ => Right::Write,
        }
    }

    fn set_right(&self, right: Right) {
        self.right.store(right as u8, Release);
    }
}

impl Pages {
    /// How long a granted page stays: until the faulting thread has been woken, which takes up to 60 us on another core, and has
    /// made its access. On a machine that is full that takes longer, so it may come to [`Pages::LONGEST_HOLD`] (`hold`).
    pub const HOLD: Nanos = Nanos::from_micros(60);
    /// A scheduler's slice.
    pub const LONGEST_HOLD: Nanos = Nanos(Self::HOLD.0 << hold::MOST_DOUBLINGS);

    /// Pages of `bytes` at most, numbered from `first` on, of a node whose clock began then.
    ///
    /// # Errors
    /// If the kernel does not provide what it takes, or blocks are no whole pages.
    pub fn new(
        addresses: &Addresses,
        block: BlockSize,
        bytes: u64,
        (first, started): (u32, Instant),
    ) -> Result<Self, Refused> {
        let in_place = addresses.in_place;
        if in_place && !in_place::KNOWN_HERE {
            return Err(Refused::InPlace);
        }
        are_pages(block)?;
        let memories = addresses.reserved.len() >> NODE_SHIFT;
        let alarm = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(|why| Refused::Failed(why.into()))?;
        let views = Views::new(Arc::clone(&addresses.reserved), in_place)?;
        let most = u64::from(u32::MAX - first);
        let slots = u32::try_from((bytes >> block.shift()).clamp(1, most)).expect("clamped");
        Ok(Self {
            views,
            block,
            memories,
            first,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            table: Mutex::new(Table::new(slots)),
            suspended: Mutex::new(false),
            stopped: Mutex::default(),
            deadline: AtomicU64::new(u64::MAX),
            alarm,
            pinned: AtomicUsize::new(0),
            started,
            in_place,
            counters: counts::Counters::default(),
        })
    }

    /// True if system calls fail on pages that are not there: only the process's own instructions wait in faults.
    pub fn is_user_mode_only(&self) -> bool {
        self.views.is_user_mode_only()
    }

    /// True if whoever has a fault gets a signal: [`Pages::resolve_in_place`].
    pub fn are_faults_in_place(&self) -> bool {
        self.in_place
    }

    /// The address of the rack that this is in every process.
    pub fn addr_of(&self, pointer: usize) -> Option<GlobalAddr> {
        self.views.offset(pointer).map(addr_at)
    }

    /// The slot of a frame, if it is a page.
    pub(super) fn index(&self, frame: FrameId) -> Option<usize> {
        frame.0.checked_sub(self.first).map(|slot| slot as usize)
    }

    fn frame(&self, slot: u32) -> FrameId {
        FrameId(self.first + slot)
    }

    fn tag(&self, slot: usize) -> BlockTag {
        BlockTag::from_bits(self.slots[slot].tag.load(Relaxed))
    }

    /// Where the page of a slot is in the file.
    fn offset(&self, slot: usize) -> usize {
        self.offset_of_block(self.tag(slot))
    }

    fn offset_of_block(&self, tag: BlockTag) -> usize {
        offset_of(tag.addr(), self.memories).expect("only what can be mapped is here")
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Whoever has this may change a right.
    fn changing(&self) -> MutexGuard<'_, bool> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A panic elsewhere leaves the table as it was: no change of it stops half way.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pages {
    /// What keeps agents waiting.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (now, table) = (self.now(), self.table());
        let keeps =
            |slot: &&Slot| slot.meta.access().is_some() && (slot.meta.is_pinned() || slot.hold.holds(now));
        f.debug_struct("Pages")
            .field("ranges", &table.ranges)
            .field("wait for holds", &table.waiting)
            .field("suspended", &*self.changing())
            .field("pinned or held", &self.slots.iter().filter(keeps).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("block", &BlockTag::from_bits(self.tag.load(Relaxed)))
            .field("access", &self.meta.access())
            .field("right", &self.right())
            .field("pinned", &self.meta.is_pinned())
            .field("kept", &self.is_kept.load(Relaxed))
            .field("held until", &self.hold.until())
            .finish_non_exhaustive()
    }
}

/// Where an address is in the file, and in the application's view.
fn offset_of(addr: GlobalAddr, memories: usize) -> Option<usize> {
    let fits = addr.offset() >> NODE_SHIFT == 0 && addr.home().index() < memories;
    fits.then(|| addr.home().index() << NODE_SHIFT | addr.offset() as usize)
}

fn addr_at(offset: usize) -> GlobalAddr {
    let within = offset as u64 & ((1 << NODE_SHIFT) - 1);
    GlobalAddr::from_bits((offset as u64 >> NODE_SHIFT) << OFFSET_BITS | within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_in_the_file_and_addresses_of_the_rack_convert_into_each_other() {
        for (node, offset) in [(0, 0), (0, (1 << NODE_SHIFT) - 1), (63, 4096)] {
            let addr = GlobalAddr::new(NodeId(node), offset);
            assert_eq!(addr_at(offset_of(addr, 64).unwrap()), addr);
        }
        assert_eq!(offset_of(GlobalAddr::new(NodeId(0), 1 << NODE_SHIFT), 64), None, "too large");
        assert_eq!(offset_of(GlobalAddr::new(NodeId(2), 0), 2), None, "no such node");
    }
}
