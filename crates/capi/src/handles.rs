//! What C has instead of pointers: handles, and the tables behind them.
//!
//! A handle is a number: its kind, a slot of that kind's table, and how often the slot was used before. Slots stay where they are for
//! the life of the process, so looking one up is one load and one comparison, which finds closed handles, those of another kind,
//! and numbers that never were handles.
//!
//! ```text
//!   63                                             0
//!   | generation | slot | 0 ... | kind (6 bits) |       the slot's number stands where the slot's size in bytes has its bit
//! ```
//!
//! Whatever is opened through a `rackmem_thread` belongs to it and is used by whoever may use that: one OS thread at a time. A call
//! that takes more than a hit takes its turn ([`Turn`]); another OS thread that comes meanwhile is refused. Two that hit in the same
//! nanoseconds are not found.
//!
//! Unsafe code: a slot's value is there as long as its handle is open. What must always hold: a value is written before its handle is
//! given out, and taken away after the handle was closed, by whoever closed it.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rackmem::NodeHandle;

use crate::rack::Thread;
use crate::status::{Failure, RackmemStatus, guarded};

/// Stands in the slot of a thread while a call has its turn. No handle has this number.
const IN_TURN: u64 = 1;
/// Stands in the first slot, where the null handle leads: nothing is ever opened there. No handle has this number, and no number is
/// less likely to be passed for one.
const NEVER: u64 = 0x5eed_1e55_f0f0_f0f0;
/// Bits of a handle's kind.
const KIND_BITS: u32 = 6;
/// Names of kinds, by their numbers.
const NAMES: [&str; 12] = [
    "handle",
    "rackmem_rack",
    "rackmem_thread",
    "rackmem_block_lock",
    "rackmem_rwlock",
    "rackmem_words",
    "rackmem_pending",
    "rackmem_objects",
    "rackmem_chains",
    "rackmem_value",
    "rackmem_mapping",
    "rackmem_pinned",
];

/// What a handle stands for.
pub(crate) trait Kind: Sized + Send + 'static {
    /// Its place in [`NAMES`].
    const NUMBER: u64;
    /// How many can be open at a time, and one: a power of two.
    const SLOTS: usize;
    /// Makes slots a power of two of bytes, so that they are found without a multiplication.
    type Align;
    /// Where they are.
    fn table() -> &'static Table<Self>;
}

#[repr(align(64))]
pub(crate) struct Align64;
#[repr(align(128))]
pub(crate) struct Align128;
#[repr(align(256))]
pub(crate) struct Align256;
#[repr(align(1024))]
pub(crate) struct Align1024;

/// The slots of a kind. Before something of it is opened that is the one in here.
pub(crate) struct Table<T: Kind> {
    /// Which bits of a handle say where its slot is, in bytes from the first. Written after `first`, and read before it.
    mask: AtomicU64,
    first: AtomicPtr<Slot<T>>,
    free: Mutex<FreeSlots>,
}

/// Slots without a handle: those that had one, and all from `used` on.
struct FreeSlots {
    former: Vec<usize>,
    used: usize,
}

impl<T: Kind> Table<T> {
    pub(crate) const fn of(first: &'static Slot<T>) -> Self {
        let free = FreeSlots { former: Vec::new(), used: 0 };
        let first = AtomicPtr::new(ptr::from_ref(first).cast_mut());
        Self { mask: AtomicU64::new(0), first, free: Mutex::new(free) }
    }

    fn free(&self) -> MutexGuard<'_, FreeSlots> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All slots that were used so far.
    fn slots(&self, free: &FreeSlots) -> &'static [Slot<T>] {
        // SAFETY: as many are there, for ever: `reserve` has made more.
        unsafe { std::slice::from_raw_parts(self.first.load(Acquire), free.used) }
    }

    /// Makes the table. It takes memory where it is used.
    fn reserve(&self, free: &mut FreeSlots) {
        let layout = Layout::array::<Slot<T>>(T::SLOTS).expect("it fits memory");
        // SAFETY: the layout has bytes; zeroes are slots without a handle.
        let first = unsafe { alloc_zeroed(layout) }.cast::<Slot<T>>();
        if first.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: it was just made.
        unsafe { &*first }.open.store(NEVER, Relaxed);
        free.used = 1;
        self.first.store(first, Release);
        self.mask.store(((T::SLOTS - 1) * size_of::<Slot<T>>()) as u64, Release);
    }
}

/// Says where the slots of a kind are, and how many.
macro_rules! kind {
    ($T:ty, $number:literal, $align:ty, $slots:expr) => {
        impl $crate::handles::Kind for $T {
            const NUMBER: u64 = $number;
            const SLOTS: usize = $slots;
            type Align = $align;

            #[inline(always)]
            fn table() -> &'static $crate::handles::Table<Self> {
                static FIRST: $crate::handles::Slot<$T> = $crate::handles::Slot::never();
                static TABLE: $crate::handles::Table<$T> = $crate::handles::Table::of(&FIRST);
                &TABLE
            }
        }
    };
}
pub(crate) use kind;

/// Where a handle's value is.
#[repr(C)]
pub(crate) struct Slot<T: Kind> {
    align: [T::Align; 0],
    /// The number of the handle that is open; or 0.
    open: AtomicU64,
    /// The thread that it was opened through.
    thread: AtomicPtr<Slot<Thread>>,
    /// The number of the handle that was opened last.
    last: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: threads reach a value by the rules at the head, one at a time or all to look; what it is may be sent to other threads.
unsafe impl<T: Kind> Sync for Slot<T> {}

impl<T: Kind> Slot<T> {
    /// One in which nothing is ever opened.
    pub(crate) const fn never() -> Self {
        Self {
            align: [],
            open: AtomicU64::new(NEVER),
            thread: AtomicPtr::new(ptr::null_mut()),
            last: AtomicU64::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Where a slot's number begins in that of a handle.
    const SHIFT: u32 = {
        assert!(size_of::<Self>().is_power_of_two() && size_of::<Self>() >= 1 << KIND_BITS);
        assert!(T::SLOTS.is_power_of_two());
        size_of::<Self>().trailing_zeros()
    };

    #[inline(always)]
    fn at(id: u64) -> &'static Self {
        let table = T::table();
        let offset = id & table.mask.load(Acquire);
        let first = table.first.load(Acquire);
        // SAFETY: the mask has bits of whole slots only, and leads to one of the table: there is one slot as long as the mask is 0, and
        // behind `first`, which is loaded later, are as many as the mask says.
        unsafe { &*first.byte_add(offset as usize) }
    }

    /// The number of a handle's slot.
    pub(crate) fn number(id: u64) -> usize {
        (id >> Self::SHIFT) as usize % T::SLOTS
    }

    /// The slot of an open handle; of a thread, unless a call has its turn.
    #[inline(always)]
    pub(crate) fn find(id: u64) -> Option<&'static Self> {
        let slot = Self::at(id);
        if slot.open.load(Acquire) == id { Some(slot) } else { None }
    }

    /// The same; otherwise what is wrong with the handle.
    pub(crate) fn expect(id: u64) -> Result<&'static Self, Failure> {
        Self::find(id).ok_or_else(|| Self::why_not(id))
    }

    #[cold]
    fn why_not(id: u64) -> Failure {
        let (name, kind) = (NAMES[T::NUMBER as usize], (id & ((1 << KIND_BITS) - 1)) as usize);
        let slot = Self::at(id);
        if id == 0 {
            let text = format_args!("the {name} is null: open one first, and see that it was opened");
            return Failure::new(RackmemStatus::BadHandle, text);
        }
        if kind as u64 != T::NUMBER {
            let is = NAMES.get(kind).copied().unwrap_or(NAMES[0]);
            let text = match is {
                "handle" => format!("{id:#x} is no handle of rackmem: pass a {name} as it was opened"),
                _ => format!("{id:#x} is a {is}, where a {name} is needed"),
            };
            return Failure::new(RackmemStatus::BadHandle, text);
        }
        if slot.open.load(Acquire) == IN_TURN && slot.last.load(Relaxed) == id {
            return in_turn();
        }
        let text = format_args!(
            "the {name} {id:#x} is closed (its rackmem_thread, too, closes what was opened through it): open it again"
        );
        Failure::new(RackmemStatus::BadHandle, text)
    }

    /// Gives out a handle.
    pub(crate) fn open(value: T, thread: Option<&'static Slot<Thread>>) -> Result<u64, Failure> {
        let table = T::table();
        let mut free = table.free();
        if free.used == 0 {
            table.reserve(&mut free);
        }
        let at = match free.former.pop() {
            Some(at) => at,
            None if free.used < T::SLOTS => {
                free.used += 1;
                free.used - 1
            }
            None => {
                let (name, most) = (NAMES[T::NUMBER as usize], T::SLOTS - 1);
                let text = format_args!("{most} handles of the kind {name} are open: close some first");
                return Err(Failure::new(RackmemStatus::TooMany, text));
            }
        };
        let slot = &table.slots(&free)[at];
        drop(free);
        let generation = (T::SLOTS as u64) << Self::SHIFT;
        let id = match slot.last.load(Relaxed) {
            0 => generation + ((at as u64) << Self::SHIFT) + T::NUMBER,
            last => last + generation,
        };
        // SAFETY: the slot was free, and is ours now; nobody looks at its value before its handle is known.
        unsafe { slot.value.get().write(MaybeUninit::new(value)) };
        slot.thread.store(thread.map_or(ptr::null_mut(), |slot| ptr::from_ref(slot).cast_mut()), Relaxed);
        slot.last.store(id, Relaxed);
        slot.open.store(id, Release);
        Ok(id)
    }

    /// Takes back what a handle stood for. None: somebody else has just done that.
    pub(crate) fn close(&'static self) -> Option<T> {
        let id = self.last.load(Relaxed);
        self.open.compare_exchange(id, 0, AcqRel, Relaxed).is_ok().then(|| self.take())
    }

    fn take(&'static self) -> T {
        // SAFETY: its handle was open, and whoever calls has closed it; so the value is there, and nobody takes it a second time. That
        // nobody uses it meanwhile is what the header asks for.
        let value = unsafe { self.value.get().read().assume_init() };
        T::table().free().former.push(Self::number(self.last.load(Relaxed)));
        value
    }

    /// The thread that it was opened through.
    #[inline(always)]
    pub(crate) fn thread(&self) -> &'static Slot<Thread> {
        let thread = self.thread.load(Relaxed);
        // SAFETY: all kinds but racks and threads are opened with one, and slots stay where they are.
        unsafe { &*thread }
    }

    /// What an open handle stands for.
    ///
    /// # Safety
    /// The handle is open, stays so for as long as the reference is used, and nobody has the value alone.
    #[inline(always)]
    pub(crate) unsafe fn value(&self) -> &T {
        // SAFETY: the caller promises it.
        unsafe { (*self.value.get()).assume_init_ref() }
    }

    /// The same, alone.
    ///
    /// # Safety
    /// The handle is open, stays so for as long as the reference is used, and nobody else has the value.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "the caller promises that it is the only one")]
    pub(crate) unsafe fn alone(&self) -> &mut T {
        // SAFETY: the caller promises it.
        unsafe { (*self.value.get()).assume_init_mut() }
    }

    /// Closes what was opened through a thread.
    pub(crate) fn close_all_of(thread: &'static Slot<Thread>, mut before: impl FnMut(&mut T)) {
        let slots = T::table().slots(&T::table().free());
        for slot in slots {
            let is_open = ![0, NEVER].contains(&slot.open.load(Acquire));
            if is_open && ptr::eq(slot.thread.load(Relaxed), thread) {
                // SAFETY: the thread's turn is ours, so nobody else uses what it has opened.
                before(unsafe { slot.alone() });
                drop(slot.close());
            }
        }
    }
}

impl Slot<Thread> {
    /// No call has its turn.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Relaxed) != IN_TURN
    }
}

fn in_turn() -> Failure {
    Failure::new(
        RackmemStatus::WrongThread,
        "another OS thread is just using this rackmem_thread, or what was opened through it: each opens its own, with rackmem_thread_open",
    )
}

/// A call that uses a thread, until this is dropped: others are refused meanwhile.
pub(crate) struct Turn {
    slot: &'static Slot<Thread>,
    id: u64,
}

impl Turn {
    fn begin(slot: &'static Slot<Thread>) -> Result<Self, Failure> {
        let id = slot.last.load(Relaxed);
        match slot.open.compare_exchange(id, IN_TURN, Acquire, Relaxed) {
            Ok(_) => Ok(Self { slot, id }),
            Err(IN_TURN) => Err(in_turn()),
            Err(_) => Err(Slot::<Thread>::why_not(id)),
        }
    }

    /// Which thread it is.
    pub(crate) fn slot(&self) -> &'static Slot<Thread> {
        self.slot
    }

    /// The thread.
    pub(crate) fn thread(&mut self) -> &mut Thread {
        // SAFETY: its handle was open when the turn began, and nobody else has a turn, or closes it, before this one ends.
        unsafe { self.slot.alone() }
    }

    /// Its handle in Rust.
    pub(crate) fn handle(&mut self) -> &mut NodeHandle {
        &mut self.thread().handle
    }

    /// The turn does not end: the thread is closed.
    pub(crate) fn close(self) -> Thread {
        let slot = self.slot;
        std::mem::forget(self);
        slot.open.store(0, Release);
        slot.take()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.slot.open.store(self.id, Release);
    }
}

/// What a call comes to.
pub(crate) type Done = Result<RackmemStatus, Failure>;

/// Does something with a thread, in its turn.
pub(crate) fn with_thread(id: u64, work: impl FnOnce(&mut Turn) -> Done) -> RackmemStatus {
    guarded(|| work(&mut Turn::begin(Slot::<Thread>::expect(id)?)?))
}

/// Closes a thread, behind what was opened through it. Of null, nothing.
pub(crate) fn close_thread(id: u64, close_all: impl FnOnce(&'static Slot<Thread>)) -> RackmemStatus {
    guarded(|| {
        if id != 0 {
            let turn = Turn::begin(Slot::<Thread>::expect(id)?)?;
            close_all(turn.slot());
            drop(turn.close());
        }
        Ok(RackmemStatus::Ok)
    })
}

/// Does something with what was opened through a thread, in its turn.
pub(crate) fn with<T: Kind>(id: u64, work: impl FnOnce(&mut Turn, &mut T) -> Done) -> RackmemStatus {
    guarded(|| {
        let slot = Slot::<T>::expect(id)?;
        let mut turn = Turn::begin(slot.thread())?;
        // SAFETY: nobody else uses it without a turn of its thread.
        work(&mut turn, unsafe { slot.alone() })
    })
}

/// Closes a handle that was opened through a thread, behind this. Of null, nothing.
pub(crate) fn close<T: Kind>(
    id: u64,
    before: impl FnOnce(&mut Turn, &mut T) -> Result<(), Failure>,
) -> RackmemStatus {
    if id == 0 { RackmemStatus::Ok } else { end(id, before) }
}

/// The same; not of null. If what comes before fails, the handle stays open.
pub(crate) fn end<T: Kind>(
    id: u64,
    before: impl FnOnce(&mut Turn, &mut T) -> Result<(), Failure>,
) -> RackmemStatus {
    guarded(|| {
        let slot = Slot::<T>::expect(id)?;
        let mut turn = Turn::begin(slot.thread())?;
        // SAFETY: nobody else uses it without a turn of its thread.
        before(&mut turn, unsafe { slot.alone() })?;
        drop(slot.close());
        Ok(RackmemStatus::Ok)
    })
}

/// Something about what was opened through a thread that nobody changes, or a default if there is no such handle.
pub(crate) fn ask<T: Kind, R: Default>(id: u64, question: impl FnOnce(&T) -> R) -> R {
    let mut answer = R::default();
    with::<T>(id, |_, value| {
        answer = question(value);
        Ok(RackmemStatus::Ok)
    });
    answer
}

/// Looks at what threads share: a rack.
pub(crate) fn look<T: Kind>(id: u64, work: impl FnOnce(&T) -> Done) -> RackmemStatus {
    guarded(|| {
        let slot = Slot::<T>::expect(id)?;
        // SAFETY: it is open; that nobody closes it meanwhile is what the header asks for.
        work(unsafe { slot.value() })
    })
}

/// Closes what threads share. Of null, nothing.
pub(crate) fn close_shared<T: Kind>(id: u64) -> RackmemStatus {
    guarded(|| {
        if id == 0 {
            return Ok(RackmemStatus::Ok);
        }
        match Slot::<T>::expect(id)?.close() {
            Some(value) => drop(value),
            None => return Err(Slot::<T>::why_not(id)),
        }
        Ok(RackmemStatus::Ok)
    })
}
