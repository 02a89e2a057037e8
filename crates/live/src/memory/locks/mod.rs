//! The copies of one node: the data of the locks that it has, each behind a gate that its threads pass without entering
//! a machine.
//!
//! Runs on every node of a live rack. The node's lock machine opens and closes gates through [`LockStoreOf`], under the lock
//! of its place; threads enter and leave beside it ([`LockCopies::enter`], [`Entered::leave`]).
//!
//! | file | holds |
//! | --- | --- |
//! | `gate.rs` | the word that says who is inside and who may enter |
//! | `hints.rs` | where a handle found its locks last |
//! | `segments.rs` | words that grow, and never move |
//! | `arena.rs` | which of them belong to which copy |
//! | `capacity.rs` | which slot a lock gets, and who has to go for it |
//! | `lock_data.rs` | how the data of locks are named |
//! | `sized.rs` | regions of which only a part counts |
//! | `store.rs` | [`node::locks::LockStore`] on top of it all |
//! | `own.rs` | copies of single threads, in a process that has no machine |
//! | `watch.rs`, `times.rs` | what is counted of locks that have names: waits, holds |
//!
//! A copy has a *slot* of eight words: the lock's address, the gate, where in the arena the data are, how long they are,
//! when they were used last, and its own number. Slots are found by the lock's address, in a set of `WAYS`; a lock that has come
//! while all of its set are in use gets one beyond.
//!
//! # What must always hold
//! 1. Whoever is inside a gate has entered the lock that he wanted, and its data stay his until he leaves: nobody changes them
//!    while readers are inside, nobody but the writer looks at them while he is.
//! 2. Who leaves a closed gate as the last tells the machine, once.
//!
//! # Why this is so: the order of memory accesses
//! **The gate** is one word, changed by read-modify-write operations only while anybody may be inside, so everything
//! that happens to it is in one order. Entering is an acquiring compare-and-swap, leaving a releasing subtraction. A release
//! sequence goes on through the operations of others on the same word, so whoever enters sees all that was done by those
//! who have left before: a writer what readers have read (and cannot be overtaken by it), everybody what writers have
//! written. The machine closes with acquire and opens with release: it sees what was written inside before it
//! sends the data on, and whoever enters sees what it has filled in.
//!
//! **A hint** names a slot and the generation of its gate. A generation lasts from the moment when the slot is
//! reserved for a lock until it is reserved for the next one, and the compare-and-swap checks it. So nobody enters another
//! lock than he wanted. Without a hint the generation is read *before* the slot's address; the address is cleared before
//! the generation ends and set after the next has begun, so an address that was read after a generation is that of this
//! generation or of a later one, in which the compare-and-swap fails.
//!
//! **Data of other nodes** are copied by name from where they are ([`LockStoreOf`]): from a copy whose machine keeps it as it
//! is until the receiver has answered, or from home memory. The message that carries the name orders the
//! accesses: it passes through the locks of inboxes.

mod arena;
mod capacity;
mod gate;
mod hints;
mod lock_data;
mod own;
mod segments;
mod sized;
mod store;
mod times;
mod watch;

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use wire::{GlobalAddr, Mode};

pub use self::gate::Left;
pub use self::hints::LockHints;
pub use self::sized::counted;
pub use self::store::LockStoreOf;
pub use self::times::{BUCKETS, Times};
pub use self::watch::{LockWatch, LockWatches, MOST_WATCHED, Waiting, WatchedLock};

use self::capacity::Capacity;
use self::gate::Gate;
use self::segments::Segments;

/// Slots in a set.
const WAYS: usize = 8;
/// Words of a slot: a cache line.
const SLOT_WORDS: usize = 8;
/// Bytes of copies for each slot, on average.
const BYTES_PER_SLOT: u64 = 256;

/// The copies of a node.
pub struct LockCopies {
    slots: Segments,
    data: Segments,
    sets: usize,
    /// Passes with every copy that comes.
    tick: AtomicU64,
    /// Copies beyond their sets.
    beyond: AtomicU64,
    /// Bytes that copies may have together, but for those that nobody could do without.
    budget: u64,
    /// What only the machine changes.
    room: Mutex<Capacity>,
    watches: LockWatches,
}

/// A copy that the calling thread is inside of: where its gate and its data are, so that nobody looks for them again.
#[derive(Clone, Copy)]
pub struct Entered<'a> {
    slot: Slot<'a>,
    words: &'a [AtomicU64],
}

impl<'a> Entered<'a> {
    /// The data.
    #[inline]
    pub const fn words(self) -> &'a [AtomicU64] {
        self.words
    }

    /// The copy's number, for [`LockCopies::inside`].
    pub fn number(self) -> u32 {
        self.slot.number()
    }

    /// How many locks have had this copy before. To be asked inside.
    pub fn generation(self) -> u64 {
        self.slot.gate().generation()
    }

    /// Leaves the lock.
    #[inline]
    pub fn leave(self, mode: Mode) -> Left {
        self.slot.gate().leave(mode)
    }

    /// The calling thread, which is inside to write, ends the lock, and does not leave any more.
    pub fn end(self) {
        self.slot.ending().store(1, Relaxed);
    }
}

/// The number that a slot is named by.
fn number(slot: usize) -> u32 {
    u32::try_from(slot).expect("slots have 32-bit numbers")
}

/// A slot's words.
#[derive(Clone, Copy)]
struct Slot<'a>(&'a [AtomicU64; SLOT_WORDS]);

impl<'a> Slot<'a> {
    /// The lock, or 0. (Nobody allocates address 0.)
    const fn tag(self) -> &'a AtomicU64 {
        &self.0[0]
    }

    const fn gate(self) -> Gate<'a> {
        Gate(&self.0[1])
    }

    /// Where in the arena its data begin.
    const fn at(self) -> &'a AtomicU64 {
        &self.0[2]
    }

    /// Their length in bytes.
    const fn len(self) -> &'a AtomicU64 {
        &self.0[3]
    }

    /// 1 if the writer inside ends the lock: it never leaves.
    const fn ending(self) -> &'a AtomicU64 {
        &self.0[5]
    }

    /// The slot's own number.
    const fn numbered(self) -> &'a AtomicU64 {
        &self.0[6]
    }

    fn number(self) -> u32 {
        u32::try_from(self.numbered().load(Relaxed)).expect("slots have 32-bit numbers")
    }

    /// The tick in which it was used last.
    const fn used(self) -> &'a AtomicU64 {
        &self.0[4]
    }
}

impl LockCopies {
    /// Capacity for copies of so many bytes together.
    pub fn new(bytes: u64) -> Self {
        let sets = usize::try_from(bytes / BYTES_PER_SLOT).expect("it fits memory").div_ceil(WAYS).max(1);
        let words = usize::try_from(bytes / 8).expect("it fits memory");
        Self {
            slots: Segments::new(sets * WAYS * SLOT_WORDS, 1 << 10),
            data: Segments::new(words.next_multiple_of(arena::LARGEST), arena::LARGEST),
            sets,
            tick: AtomicU64::new(0),
            beyond: AtomicU64::new(0),
            budget: bytes,
            room: Mutex::new(Capacity::new()),
            watches: LockWatches::default(),
        }
    }

    /// Enters a lock, if it is where this thread found it last, and its gate is open for that. The calling thread has to
    /// leave again.
    #[inline(always)]
    pub fn enter_hinted(
        &self,
        hints: &LockHints,
        lock: (GlobalAddr, u32),
        mode: Mode,
    ) -> Option<Entered<'_>> {
        let (slot, generation) = hints.find(lock.0, lock.1)?;
        self.enter_slot(slot, generation, mode)
    }

    /// The same, wherever on this node it is.
    pub fn enter(&self, hints: &mut LockHints, lock: (GlobalAddr, u32), mode: Mode) -> Option<Entered<'_>> {
        self.enter_hinted(hints, lock, mode).or_else(|| self.enter_found(hints, lock, mode))
    }

    #[inline(always)]
    fn enter_slot(&self, slot: u32, generation: u64, mode: Mode) -> Option<Entered<'_>> {
        let slot = self.slot(slot);
        if !slot.gate().enter(generation, mode) {
            return None;
        }
        self.touch(slot);
        Some(self.entered(slot))
    }

    fn enter_found(&self, hints: &mut LockHints, lock: (GlobalAddr, u32), mode: Mode) -> Option<Entered<'_>> {
        let (slot, generation) = self.look_up(lock)?;
        hints.note(lock, slot, generation);
        self.enter_slot(slot, generation, mode)
    }

    /// The slot of a lock that the machine has let the calling thread into.
    ///
    /// # Panics
    /// If it has not.
    pub fn admitted(&self, hints: &mut LockHints, lock: (GlobalAddr, u32)) -> Entered<'_> {
        let (slot, generation) = self.look_up(lock).expect("whoever is inside keeps the copy here");
        hints.note(lock, slot, generation);
        let slot = self.slot(slot);
        self.touch(slot);
        self.entered(slot)
    }

    /// The copy with this number, which the calling thread is inside of ([`Entered::number`]).
    pub fn inside(&self, number: u32) -> Entered<'_> {
        self.entered(self.slot(number))
    }

    /// To be asked inside: until whoever is there has left, the slot belongs to the lock, and its data stay where they are.
    #[inline]
    fn entered<'a>(&'a self, slot: Slot<'a>) -> Entered<'a> {
        Entered { slot, words: self.words(slot) }
    }

    /// The data of the lock that has this slot.
    #[inline]
    fn words(&self, slot: Slot<'_>) -> &[AtomicU64] {
        let (at, len) = (slot.at().load(Relaxed), slot.len().load(Relaxed) as u32);
        self.data.get(at as usize, wire::region_bytes(len) as usize / 8)
    }

    /// Closes every gate, for good: this node counts no more. What threads are inside of stays as it is.
    pub fn close_all(&self) {
        for slot in 0..self.room().slots_in_use(self.sets) {
            let slot = self.slot(slot);
            if slot.tag().load(Relaxed) != 0 {
                let _ = slot.gate().close();
            }
        }
    }

    #[inline]
    fn slot(&self, slot: u32) -> Slot<'_> {
        Slot(self.slots.part(slot as usize))
    }

    #[inline]
    fn touch(&self, slot: Slot<'_>) {
        let tick = self.tick.load(Relaxed);
        if slot.used().load(Relaxed) != tick {
            slot.used().store(tick, Relaxed);
        }
    }

    /// Where a lock is, and in which generation that was so.
    fn look_up(&self, (lock, len): (GlobalAddr, u32)) -> Option<(u32, u64)> {
        let is_it = |number: u32| {
            let slot = self.slot(number);
            let generation = slot.gate().generation();
            let found = slot.tag().load(Acquire) == lock.bits() && slot.len().load(Relaxed) == u64::from(len);
            found.then_some((number, generation))
        };
        self.tagged(lock, lock.bits()).and_then(is_it).or_else(|| {
            if self.beyond.load(Relaxed) == 0 {
                return None;
            }
            is_it(self.room().beyond(lock)?)
        })
    }

    /// The slot of a lock's set that has this tag.
    fn tagged(&self, lock: GlobalAddr, tag: u64) -> Option<u32> {
        let set = self.set_of(lock);
        let slots: &[AtomicU64; WAYS * SLOT_WORDS] = self.slots.part(set);
        let way = (0..WAYS).find(|way| slots[way * SLOT_WORDS].load(Acquire) == tag)?;
        Some(number(set * WAYS + way))
    }

    /// The number of a lock's set.
    fn set_of(&self, lock: GlobalAddr) -> usize {
        let hash = (lock.bits() >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(hash) * self.sets as u128) >> 64) as usize
    }

    fn room(&self) -> std::sync::MutexGuard<'_, Capacity> {
        self.room.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
