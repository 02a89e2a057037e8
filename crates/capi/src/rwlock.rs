//! Locks, and their data.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use rackmem::{BytesReadGuard, BytesWriteGuard, Discipline, GlobalAddr, LockedBytes, NodeId};

use crate::pointer::{give, result, shared, take_back, unique};
use crate::rack::RackmemThread;
use crate::status::{Failure, RackmemStatus, guarded};

/// Bytes before the data, as a `Locked` of Rust has them: the word that says whether they are poisoned, and their fencing number.
const HEADER: usize = 16;
/// Bytes of the word that says whether they are poisoned.
const STATE: usize = 8;
const POISONED: u64 = 1;

/// A reader-writer lock and the bytes that it guards, which come with it. Threads may share it.
pub struct RackmemRwlock {
    bytes: Arc<LockedBytes>,
    len: usize,
}

/// A lock that a thread is inside of.
pub(crate) struct Held {
    /// Dropped first: it borrows what `bytes` keeps alive.
    guard: Guard,
    bytes: Arc<LockedBytes>,
}

enum Guard {
    Read(BytesReadGuard<'static>),
    Write(BytesWriteGuard<'static>),
}

impl Held {
    fn data(&mut self) -> *mut u8 {
        match &mut self.guard {
            // Only to be read, which the header says.
            Guard::Read(guard) => guard[HEADER..].as_ptr().cast_mut(),
            Guard::Write(guard) => guard[HEADER..].as_mut_ptr(),
        }
    }

    fn is_poisoned(&self) -> bool {
        let bytes: &[u8] = match &self.guard {
            Guard::Read(guard) => guard,
            Guard::Write(guard) => guard,
        };
        bytes[..STATE] == POISONED.to_ne_bytes()
    }

    fn set_state(&mut self, state: u64) -> bool {
        let Guard::Write(guard) = &mut self.guard else { return false };
        guard[..STATE].copy_from_slice(&state.to_ne_bytes());
        true
    }

    /// A writer has come in: the fencing number grows.
    fn granted(&mut self) {
        if let Guard::Write(guard) = &mut self.guard {
            let fence: [u8; STATE] = guard[STATE..HEADER].try_into().expect("a word");
            guard[STATE..HEADER].copy_from_slice(&u64::from_ne_bytes(fence).wrapping_add(1).to_ne_bytes());
        }
    }

    /// Marks what is held for writing.
    pub(crate) fn poison(&mut self) {
        self.set_state(POISONED);
    }
}

/// How long to wait.
#[derive(Clone, Copy)]
enum Wait {
    Forever,
    Not,
    AtMost(Duration),
}

fn held(thread: &RackmemThread, lock: &RackmemRwlock) -> Option<usize> {
    thread.held.iter().rposition(|held| held.bytes.addr() == lock.bytes.addr())
}

fn not_held() -> Failure {
    Failure::new(RackmemStatus::NotHeld, "this thread does not hold the lock")
}

/// Takes a lock, and says where its data are.
///
/// # Safety
/// As the functions of the header that call it.
unsafe fn take(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
    data: *mut *mut u8,
    write: bool,
    wait: Wait,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises all three.
        let (data, lock, thread) =
            unsafe { (result(data, "data")?, shared(lock, "lock")?, unique(thread, "thread")?) };
        // Also twice to read: a writer may come between, who waits for the first and whom the second waits for.
        if held(thread, lock).is_some() {
            return Err(Failure::new(
                RackmemStatus::Deadlock,
                "this thread holds the lock already: unlock it first",
            ));
        }
        let bytes = Arc::clone(&lock.bytes);
        let handle = &mut thread.handle;
        let guard = if write {
            match wait {
                Wait::Forever => bytes.write(handle).map(Some),
                Wait::Not => bytes.try_write(handle),
                Wait::AtMost(most) => bytes.write_timeout(handle, most),
            }?
            // SAFETY: the guard borrows the `LockedBytes` behind this `Arc`, which does not move and lives at least as long as
            // the guard: `Held` keeps both, and drops the guard first.
            .map(|guard| unsafe {
                Guard::Write(std::mem::transmute::<BytesWriteGuard<'_>, BytesWriteGuard<'static>>(guard))
            })
        } else {
            match wait {
                Wait::Forever => bytes.read(handle).map(Some),
                Wait::Not => bytes.try_read(handle),
                Wait::AtMost(most) => bytes.read_timeout(handle, most),
            }?
            // SAFETY: as above.
            .map(|guard| unsafe {
                Guard::Read(std::mem::transmute::<BytesReadGuard<'_>, BytesReadGuard<'static>>(guard))
            })
        };
        let Some(guard) = guard else {
            return Err(Failure::new(
                RackmemStatus::Busy,
                "the lock is held, and was waited for long enough",
            ));
        };
        let mut held = Held { guard, bytes };
        let poisoned = held.is_poisoned();
        held.granted();
        // Last: nothing else looks at the data through the guard while C has the pointer.
        *data = held.data();
        thread.held.push(held);
        if poisoned {
            return Err(Failure::new(
                RackmemStatus::Poisoned,
                "whoever wrote last did not end properly: the lock is held, and its data may be half written",
            ));
        }
        Ok(RackmemStatus::Ok)
    })
}

fn region(len: usize) -> Result<usize, Failure> {
    len.checked_next_multiple_of(8)
        .and_then(|len| len.checked_add(HEADER))
        .ok_or_else(|| Failure::new(RackmemStatus::InvalidArgument, "no lock guards so many bytes"))
}

/// Creates a lock over `len` bytes of zeroes (0 is possible) in the memory of node `home`.
///
/// # Safety
/// `thread` is open and used by no other thread; `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_create(
    thread: *mut RackmemThread,
    home: u16,
    len: usize,
    lock: *mut *mut RackmemRwlock,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises both.
        let (to, thread) = unsafe { (result(lock, "lock")?, unique(thread, "thread")?) };
        let (handle, region) = (&mut thread.handle, region(len)?);
        // Looked at before memory is taken.
        handle.rwlock(GlobalAddr::new(NodeId(home), 0), region)?;
        let addr = handle.alloc(region as u64, NodeId(home), Discipline::Locked)?;
        let bytes = handle.rwlock(addr, region)?;
        bytes.write(handle)?.fill(0);
        *to = give(RackmemRwlock { bytes: Arc::new(bytes), len });
        Ok(RackmemStatus::Ok)
    })
}

/// Opens the lock at this address, which `rackmem_rwlock_address` has named, in this or another process. The length has to be
/// the one that it was created with; whether there is such a lock is found out when it is taken.
///
/// # Safety
/// `thread` is open and used by no other thread; `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_open(
    thread: *mut RackmemThread,
    address: u64,
    len: usize,
    lock: *mut *mut RackmemRwlock,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises both.
        let (to, thread) = unsafe { (result(lock, "lock")?, unique(thread, "thread")?) };
        let bytes = thread.handle.rwlock(GlobalAddr::from_bits(address), region(len)?)?;
        *to = give(RackmemRwlock { bytes: Arc::new(bytes), len });
        Ok(RackmemStatus::Ok)
    })
}

/// Forgets a lock here. The lock itself stays, for others; threads that hold it go on holding it. Null is nothing.
///
/// # Safety
/// `lock` is null, or comes from `rackmem_rwlock_create` or `_open` and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_close(lock: *mut RackmemRwlock) {
    guarded(|| {
        if !lock.is_null() {
            // SAFETY: the caller promises it.
            drop(unsafe { take_back(lock, "lock") }?);
        }
        Ok(RackmemStatus::Ok)
    });
}

/// Waits for the lock, and gives it and its memory back. Whoever waits for it, or asks later, gets
/// `RACKMEM_NO_SUCH_LOCK`. It has to be closed all the same.
///
/// # Safety
/// `lock` and `thread` are open, and `thread` is used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_free(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises both.
        let (lock, thread) = unsafe { (shared(lock, "lock")?, unique(thread, "thread")?) };
        if held(thread, lock).is_some() {
            return Err(Failure::new(
                RackmemStatus::Deadlock,
                "this thread holds the lock: unlock it before it is freed",
            ));
        }
        LockedBytes::clone(&lock.bytes).free(&mut thread.handle)?;
        Ok(RackmemStatus::Ok)
    })
}

/// The address of a lock, for other processes; 0 for null.
///
/// # Safety
/// `lock` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_address(lock: *const RackmemRwlock) -> u64 {
    // SAFETY: the caller promises it.
    unsafe { lock.as_ref() }.map_or(0, |lock| lock.bytes.addr().bits())
}

/// How many bytes a lock guards; 0 for null.
///
/// # Safety
/// `lock` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_len(lock: *const RackmemRwlock) -> usize {
    // SAFETY: the caller promises it.
    unsafe { lock.as_ref() }.map_or(0, |lock| lock.len)
}

/// Waits for the lock, to read its data together with others. `*data` is where they are, aligned to 8 bytes, until it is unlocked. With
/// `RACKMEM_OK` and with `RACKMEM_POISONED` the lock is held.
///
/// # Safety
/// `lock` and `thread` are open, and `thread` is used by no other thread; `data` may be written. What it points to is not
/// written, and not used after the unlock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_read(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
    data: *mut *const c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, thread, data.cast(), false, Wait::Forever) }
}

/// Waits for the lock, to write its data alone. Otherwise as `rackmem_rwlock_read`.
///
/// # Safety
/// As `rackmem_rwlock_read`; `len` bytes may be written at `*data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_write(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
    data: *mut *mut c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, thread, data.cast(), true, Wait::Forever) }
}

/// Takes the lock to read, unless somebody writes or waits to: then `RACKMEM_BUSY`. (A message may have to travel.)
///
/// # Safety
/// As `rackmem_rwlock_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_tryread(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
    data: *mut *const c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, thread, data.cast(), false, Wait::Not) }
}

/// Takes the lock to write, unless somebody has it or waits for it: then `RACKMEM_BUSY`. (A message may have to travel.)
///
/// # Safety
/// As `rackmem_rwlock_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_trywrite(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
    data: *mut *mut c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, thread, data.cast(), true, Wait::Not) }
}

/// Waits for the lock at most so many nanoseconds, to read; then `RACKMEM_BUSY`.
///
/// # Safety
/// As `rackmem_rwlock_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_timedread(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
    nanoseconds: u64,
    data: *mut *const c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, thread, data.cast(), false, Wait::AtMost(Duration::from_nanos(nanoseconds))) }
}

/// Waits for the lock at most so many nanoseconds, to write; then `RACKMEM_BUSY`.
///
/// # Safety
/// As `rackmem_rwlock_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_timedwrite(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
    nanoseconds: u64,
    data: *mut *mut c_void,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(lock, thread, data.cast(), true, Wait::AtMost(Duration::from_nanos(nanoseconds))) }
}

/// Releases the lock. The pointer to its data is void.
///
/// # Safety
/// `lock` and `thread` are open, and `thread` is used by no other thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_unlock(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises both.
        let (lock, thread) = unsafe { (shared(lock, "lock")?, unique(thread, "thread")?) };
        let at = held(thread, lock).ok_or_else(not_held)?;
        drop(thread.held.swap_remove(at));
        Ok(RackmemStatus::Ok)
    })
}

/// Says of a lock that this thread holds for writing whether its data are poisoned: everybody who takes it from then on is
/// told. Poison does not go by itself.
///
/// # Safety
/// As `rackmem_rwlock_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_set_poisoned(
    lock: *const RackmemRwlock,
    thread: *mut RackmemThread,
    poisoned: bool,
) -> RackmemStatus {
    guarded(|| {
        // SAFETY: the caller promises both.
        let (lock, thread) = unsafe { (shared(lock, "lock")?, unique(thread, "thread")?) };
        let at = held(thread, lock).ok_or_else(not_held)?;
        if thread.held[at].set_state(if poisoned { POISONED } else { 0 }) {
            Ok(RackmemStatus::Ok)
        } else {
            Err(Failure::new(RackmemStatus::NotHeld, "this thread holds the lock to read only"))
        }
    })
}
