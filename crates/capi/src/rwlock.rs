//! Locks, and their data.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rackmem::{
    BytesReadGuard, BytesWriteGuard, Error, GlobalAddr, LockedBytes, MappedRegions, NodeHandle, NodeId,
};

use crate::handles::{Align256, Slot, Turn, ask, close, end, kind, with, with_thread};
use crate::pointer::To;
use crate::rack::{RackmemThread, Thread};
use crate::regions;
use crate::status::{Failure, RackmemStatus};

/// The bit of the first word of a lock's region that says that its data are poisoned.
const POISONED: u64 = 1;

/// A reader-writer lock and the bytes that it guards, which come with it. It belongs to the `rackmem_thread` that it was opened
/// through; other threads open the same lock by its address.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemRwlock {
    /// 0: null.
    pub id: u64,
}

/// An open lock.
pub(crate) struct Lock {
    /// Dropped first: it borrows `bytes`.
    pub(crate) held: Option<Guard>,
    bytes: LockedBytes,
    len: usize,
    /// What the first word of the region is when there is nothing to look at: of a lock with a name, the number under which it was made;
    /// of another one, what was found there.
    clean: u64,
    is_named: bool,
    /// While it is held, its regions are shown by this.
    pub(crate) mapped: Option<MappedRegions>,
}

pub(crate) enum Guard {
    Read(BytesReadGuard<'static>),
    Write(BytesWriteGuard<'static>),
}

kind!(Lock, 4, Align256, 1 << 18);

pub(crate) const NO_LOCK: RackmemRwlock = RackmemRwlock { id: 0 };

/// How long to wait.
#[derive(Clone, Copy)]
enum Wait {
    Forever,
    Not,
    AtMost(Duration),
}

/// The parts of a region. (One that is too short for its header cannot be opened.)
#[inline(always)]
fn parts(words: &[AtomicU64]) -> Option<(&AtomicU64, &AtomicU64, *mut u8)> {
    let [state, fence, data @ ..] = words else { return None };
    // Words that threads may write to where they are shared; through pointers, too.
    Some((state, fence, data.as_ptr().cast_mut().cast()))
}

impl Guard {
    pub(crate) fn words(&self) -> &[AtomicU64] {
        match self {
            Self::Read(guard) => guard.words(),
            Self::Write(guard) => guard.words(),
        }
    }
}

impl Lock {
    /// A guard of this lock as it is kept beside it.
    ///
    /// # Safety
    /// This is where it stays, and the guard goes before the lock does.
    #[inline(always)]
    unsafe fn writing(guard: BytesWriteGuard<'_>) -> BytesWriteGuard<'static> {
        // SAFETY: the caller promises it; only the lifetime changes.
        unsafe { std::mem::transmute::<BytesWriteGuard<'_>, BytesWriteGuard<'static>>(guard) }
    }

    /// The same of a reader.
    ///
    /// # Safety
    /// As for [`Lock::writing`].
    #[inline(always)]
    unsafe fn reading(guard: BytesReadGuard<'_>) -> BytesReadGuard<'static> {
        // SAFETY: the caller promises it; only the lifetime changes.
        unsafe { std::mem::transmute::<BytesReadGuard<'_>, BytesReadGuard<'static>>(guard) }
    }

    /// What to do when its handle goes: before the lock does, which the guard borrows. If it is held for writing, nobody knows whether
    /// that was done.
    pub(crate) fn abandon(&mut self) {
        regions::hide(self);
        if let Some(Guard::Write(guard)) = self.held.take()
            && let Some((state, ..)) = parts(guard.words())
        {
            state.fetch_or(POISONED, Relaxed);
        }
    }

    /// The thread is inside: where the data are, and whether they are poisoned. Unless they are others than those that were named.
    fn enter(&mut self, guard: Guard) -> Result<(*mut u8, bool), Failure> {
        let (state, _, data) = parts(guard.words()).expect("a region has a header");
        let state = state.load(Relaxed);
        if !self.is_named {
            self.clean = state & !POISONED;
        } else if state & !POISONED != self.clean {
            return Err(Error::Lost { addr: self.bytes.addr() }.into());
        }
        self.held = Some(guard);
        Ok((data, state & POISONED != 0))
    }

    /// The bytes, whether it is held or not.
    pub(crate) const fn bytes(&self) -> &LockedBytes {
        &self.bytes
    }

    fn wait(&self, handle: &mut NodeHandle, write: bool, wait: Wait) -> Result<Option<Guard>, Failure> {
        let bytes = &self.bytes;
        Ok(if write {
            let guard = match wait {
                Wait::Forever => Some(bytes.write(handle)?),
                Wait::Not => bytes.try_write(handle)?,
                Wait::AtMost(most) => bytes.write_timeout(handle, most)?,
            };
            // SAFETY: a lock stays in its slot until it is closed, and its guard is dropped first.
            guard.map(|guard| Guard::Write(unsafe { Self::writing(guard) }))
        } else {
            let guard = match wait {
                Wait::Forever => Some(bytes.read(handle)?),
                Wait::Not => bytes.try_read(handle)?,
                Wait::AtMost(most) => bytes.read_timeout(handle, most)?,
            };
            // SAFETY: as above.
            guard.map(|guard| Guard::Read(unsafe { Self::reading(guard) }))
        })
    }
}

/// True if the thread holds the lock, through this handle or another one.
fn is_held(turn: &mut Turn, id: u64, open: &Lock) -> bool {
    open.held.is_some() || holds(turn, open.bytes.addr(), id)
}

/// True if the thread holds the lock at this address, through another handle than this one.
pub(crate) fn holds(turn: &mut Turn, addr: GlobalAddr, but: u64) -> bool {
    let address = addr.bits();
    let same = turn.thread().locks.range((address, 0)..=(address, u64::MAX));
    let mut others =
        same.filter(|(_, other)| *other != but).filter_map(|(_, other)| Slot::<Lock>::find(*other));
    // SAFETY: the thread's turn is ours, so nobody else uses what it has opened; and the caller's own one is left out.
    others.any(|slot| unsafe { slot.value() }.held.is_some())
}

/// Takes a lock, and says where its data are.
///
/// # Safety
/// `data` is null, or may be written.
unsafe fn take(lock: RackmemRwlock, data: *mut *mut u8, write: bool, wait: Wait) -> RackmemStatus {
    with::<Lock>(lock.id, |turn, open| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(data, "data", std::ptr::null_mut()) }?;
        // Also twice to read: a writer may come between, who waits for the first and whom the second waits for.
        if is_held(turn, lock.id, open) {
            return Err(Failure::new(
                RackmemStatus::Deadlock,
                "this thread holds the lock already: unlock it first",
            ));
        }
        let Some(guard) = open.wait(turn.handle(), write, wait)? else {
            return Err(Failure::new(
                RackmemStatus::Busy,
                "the lock is held, and was waited for long enough",
            ));
        };
        let (data, is_poisoned) = open.enter(guard)?;
        if let Err(why) = regions::show(open) {
            open.held = None;
            return Err(why);
        }
        to.set(data);
        if is_poisoned {
            return Err(Failure::new(
                RackmemStatus::Poisoned,
                "whoever wrote last did not end properly: the lock is held, and its data may be half written",
            ));
        }
        Ok(RackmemStatus::Ok)
    })
}

/// What was there was looked at: the compiler need not look again.
#[inline(always)]
fn forget_none(former: Option<Guard>) {
    std::mem::forget(former);
}

/// So many bytes in whole words.
pub(crate) fn whole(len: usize) -> Result<usize, Failure> {
    len.checked_next_multiple_of(8)
        .ok_or_else(|| Failure::new(RackmemStatus::InvalidArgument, "no lock guards so many bytes"))
}

/// Opens a lock; the one that was made under this number, or whichever is there.
pub(crate) fn open(
    turn: &mut Turn,
    to: To<RackmemRwlock>,
    bytes: LockedBytes,
    len: usize,
    making: Option<u64>,
) -> Result<RackmemStatus, Failure> {
    let address = bytes.addr().bits();
    let clean = making.map_or(u64::MAX, |making| making << 1);
    let lock = Lock { held: None, bytes, len, clean, is_named: making.is_some(), mapped: None };
    let id = Slot::open(lock, Some(turn.slot()))?;
    turn.thread().locks.insert((address, id));
    to.set(RackmemRwlock { id });
    Ok(RackmemStatus::Ok)
}

/// Creates a lock over `len` bytes of zeroes (0 is possible) in the memory of node `home`. The OS thread that uses `thread`.
///
/// # Safety
/// `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_create(
    thread: RackmemThread,
    home: u16,
    len: usize,
    lock: *mut RackmemRwlock,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(lock, "lock", NO_LOCK) }?;
        let (handle, whole) = (turn.handle(), whole(len)?);
        let addr = handle.make_locked(NodeId(home), whole)?;
        let bytes = handle.locked_bytes(addr, whole)?;
        open(turn, to, bytes, len, None)
    })
}

/// Opens the lock at this address, which `rackmem_rwlock_address` has named, in this or another process. The length has to be
/// the one that it was created with; whether there is such a lock is found out when it is taken. The OS thread that uses `thread`.
///
/// # Safety
/// `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_open(
    thread: RackmemThread,
    address: u64,
    len: usize,
    lock: *mut RackmemRwlock,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(lock, "lock", NO_LOCK) }?;
        let bytes = turn.handle().locked_bytes(GlobalAddr::from_bits(address), whole(len)?)?;
        open(turn, to, bytes, len, None)
    })
}

fn forget(turn: &mut Turn, id: u64, address: u64) {
    turn.thread().locks.remove(&(address, id));
}

/// Forgets a lock here. The lock itself stays, for others. If it is held it is released; if it is held for writing, its data are
/// poisoned. Closing null does nothing. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_close(lock: RackmemRwlock) -> RackmemStatus {
    let id = lock.id;
    close::<Lock>(id, |turn, lock| {
        lock.abandon();
        forget(turn, id, lock.bytes.addr().bits());
        Ok(())
    })
}

/// Waits for the lock, gives it and its memory back, and closes the handle. Whoever waits for it, or asks later, gets
/// `RACKMEM_UNALLOCATED`. A lost one can be freed, too. If it fails, the handle stays open. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_free(lock: RackmemRwlock) -> RackmemStatus {
    let id = lock.id;
    end::<Lock>(id, |turn, lock| {
        if is_held(turn, id, lock) {
            return Err(Failure::new(
                RackmemStatus::Deadlock,
                "this thread holds the lock: unlock it before it is freed",
            ));
        }
        lock.bytes.clone().free(turn.handle())?;
        forget(turn, id, lock.bytes.addr().bits());
        Ok(())
    })
}

/// The address of a lock, for other threads and processes; 0 if there is no such handle. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_address(lock: RackmemRwlock) -> u64 {
    ask::<Lock, _>(lock.id, |lock| lock.bytes.addr().bits())
}

/// How many bytes a lock guards; of one over regions, its room. 0 if there is no such handle. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_len(lock: RackmemRwlock) -> usize {
    ask::<Lock, _>(lock.id, |lock| lock.len)
}

/// Waits for the lock, to read its data together with others. `*data` is where they are, aligned to 8 bytes, until it is unlocked. With
/// `RACKMEM_OK` and with `RACKMEM_POISONED` the lock is held. The OS thread that uses its thread.
///
/// # Safety
/// `data` may be written. What it points to is not written, and not used after the unlock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_read(lock: RackmemRwlock, data: *mut *const c_void) -> RackmemStatus {
    if let Some(slot) = Slot::<Lock>::find(lock.id)
        && !data.is_null()
        && slot.thread().is_idle()
    {
        // SAFETY: both handles are open, and the caller is the one OS thread that uses them; no call has the thread's turn.
        let (open, thread): (&mut Lock, &Thread) = unsafe { (slot.alone(), slot.thread().value()) };
        let mut at = ptr::null_mut();
        let is_clean = |words: &[AtomicU64]| {
            parts(words).is_some_and(|(state, _, data)| {
                at = data;
                state.load(Relaxed) == open.clean
            })
        };
        if open.held.is_none()
            && open.mapped.is_none()
            && let Some(guard) = open.bytes.read_here(&thread.handle, is_clean)
        {
            // SAFETY: a lock stays in its slot until it is closed, and its guard is dropped first. The caller promises the rest.
            unsafe {
                forget_none(open.held.replace(Guard::Read(Lock::reading(guard))));
                data.write(at.cast());
            }
            return RackmemStatus::Ok;
        }
    }
    // SAFETY: passed on.
    unsafe { read_waiting(lock, data) }
}

#[cold]
#[inline(never)]
unsafe fn read_waiting(lock: RackmemRwlock, data: *mut *const c_void) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, data.cast(), false, Wait::Forever) }
}

/// Waits for the lock, to write its data alone. Otherwise as `rackmem_rwlock_read`.
///
/// # Safety
/// `data` may be written. What it points to is not used after the unlock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_write(lock: RackmemRwlock, data: *mut *mut c_void) -> RackmemStatus {
    if let Some(slot) = Slot::<Lock>::find(lock.id)
        && !data.is_null()
        && slot.thread().is_idle()
    {
        // SAFETY: both handles are open, and the caller is the one OS thread that uses them; no call has the thread's turn.
        let (open, thread): (&mut Lock, &Thread) = unsafe { (slot.alone(), slot.thread().value()) };
        let mut at = ptr::null_mut();
        let is_clean = |words: &[AtomicU64]| {
            parts(words).is_some_and(|(state, fence, data)| {
                at = data;
                let is_clean = state.load(Relaxed) == open.clean;
                if is_clean {
                    fence.store(fence.load(Relaxed).wrapping_add(1), Relaxed);
                }
                is_clean
            })
        };
        if open.held.is_none()
            && open.mapped.is_none()
            && let Some(guard) = open.bytes.write_here(&thread.handle, is_clean)
        {
            // SAFETY: a lock stays in its slot until it is closed, and its guard is dropped first. The caller promises the rest.
            unsafe {
                forget_none(open.held.replace(Guard::Write(Lock::writing(guard))));
                data.write(at.cast());
            }
            return RackmemStatus::Ok;
        }
    }
    // SAFETY: passed on.
    unsafe { write_waiting(lock, data) }
}

#[cold]
#[inline(never)]
unsafe fn write_waiting(lock: RackmemRwlock, data: *mut *mut c_void) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, data.cast(), true, Wait::Forever) }
}

/// Takes the lock to read, unless somebody writes or waits to: then `RACKMEM_BUSY`. (A message may have to travel.) The OS thread that
/// uses its thread.
///
/// # Safety
/// As `rackmem_rwlock_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_tryread(
    lock: RackmemRwlock,
    data: *mut *const c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, data.cast(), false, Wait::Not) }
}

/// Takes the lock to write, unless somebody has it or waits for it: then `RACKMEM_BUSY`. (A message may have to travel.) The OS thread
/// that uses its thread.
///
/// # Safety
/// As `rackmem_rwlock_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_trywrite(
    lock: RackmemRwlock,
    data: *mut *mut c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, data.cast(), true, Wait::Not) }
}

/// Waits for the lock at most so many nanoseconds, to read; then `RACKMEM_BUSY`. The OS thread that uses its thread.
///
/// # Safety
/// As `rackmem_rwlock_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_timedread(
    lock: RackmemRwlock,
    nanoseconds: u64,
    data: *mut *const c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, data.cast(), false, Wait::AtMost(Duration::from_nanos(nanoseconds))) }
}

/// Waits for the lock at most so many nanoseconds, to write; then `RACKMEM_BUSY`. The OS thread that uses its thread.
///
/// # Safety
/// As `rackmem_rwlock_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_timedwrite(
    lock: RackmemRwlock,
    nanoseconds: u64,
    data: *mut *mut c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, data.cast(), true, Wait::AtMost(Duration::from_nanos(nanoseconds))) }
}

pub(crate) fn not_held(why: &str) -> Failure {
    Failure::new(RackmemStatus::NotHeld, why)
}

/// Releases the lock. The pointer to its data is void. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_unlock(lock: RackmemRwlock) -> RackmemStatus {
    if let Some(slot) = Slot::<Lock>::find(lock.id)
        && slot.thread().is_idle()
    {
        // SAFETY: the handle is open, and the caller is the one OS thread that uses it; no call has the thread's turn.
        let open = unsafe { slot.alone() };
        if open.mapped.is_none() && open.held.is_some() {
            // Where it is: a guard that is moved first costs as much again.
            open.held = None;
            return RackmemStatus::Ok;
        }
    }
    unlock_mapped(lock)
}

#[cold]
#[inline(never)]
fn unlock_mapped(lock: RackmemRwlock) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| {
        regions::hide(open);
        match open.held.take() {
            Some(_) => Ok(RackmemStatus::Ok),
            None => Err(not_held(
                "the lock is not held through this handle: unlock it with the one that has taken it",
            )),
        }
    })
}

/// Says of a lock that is held for writing whether its data are poisoned: everybody who takes it from then on is
/// told. Poison does not go by itself. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_set_poisoned(lock: RackmemRwlock, poisoned: bool) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| match &open.held {
        Some(Guard::Write(guard)) => {
            let (state, ..) = parts(guard.words()).expect("a region has a header");
            state.store(state.load(Relaxed) & !POISONED | u64::from(poisoned), Relaxed);
            Ok(RackmemStatus::Ok)
        }
        Some(Guard::Read(_)) => Err(not_held("the lock is held to read only: take it to write")),
        None => Err(not_held("the lock is not held through this handle: take it to write")),
    })
}

/// The fencing number of a lock that is held for writing: it grows with every write grant, by whomever. A store outside the rack that
/// refuses what comes with a smaller number than it has seen is not changed by a holder that was taken for dead. The OS thread that
/// uses its thread.
///
/// # Safety
/// `fence` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_fence(lock: RackmemRwlock, fence: *mut u64) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::at(fence, "fence") }?;
        let Some(Guard::Write(guard)) = &open.held else {
            return Err(not_held("the lock is not held for writing through this handle: take it to write"));
        };
        let (_, fence, _) = parts(guard.words()).expect("a region has a header");
        to.set(fence.load(Relaxed));
        Ok(RackmemStatus::Ok)
    })
}

/// Of a lock with copies that is held: whether the writer before has died, or was taken for dead, with its node, inside. `*died` says so
/// until somebody has written, and `*node` which node it was. What it had begun is not there: the data are those of the last unlock. The
/// OS thread that uses its thread.
///
/// # Safety
/// `died` and `node` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_writer_that_died(
    lock: RackmemRwlock,
    died: *mut bool,
    node: *mut u16,
) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| {
        // SAFETY: the caller promises it.
        let (died, to) = unsafe { (To::at(died, "died")?, To::at(node, "node")?) };
        let found = match &open.held {
            Some(Guard::Read(guard)) => guard.writer_that_died(),
            Some(Guard::Write(guard)) => guard.writer_that_died(),
            None => return Err(not_held("the lock is not held through this handle: take it")),
        };
        died.set(found.is_some());
        to.set(found.map_or(0, |node| node.0));
        Ok(RackmemStatus::Ok)
    })
}
