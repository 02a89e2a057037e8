//! Locks over several regions of bytes, which come, go and grow while such a lock is held to write.
#![allow(unsafe_code)]

use std::ffi::c_void;

use rackmem::{
    Discipline, GlobalAddr, LockedRegions, NodeId, RegionsError, RegionsReadGuard, RegionsWriteGuard,
};

use crate::handles::{Turn, with, with_thread};
use crate::pointer::To;
use crate::rack::RackmemThread;
use crate::rwlock::{Guard, Lock, NO_LOCK, RackmemRwlock, holds, not_held, open};
use crate::status::{Failure, RackmemStatus};

fn is_none(address: u64) -> Failure {
    let text = format_args!("the lock guards no region of the memory at {}", GlobalAddr::from_bits(address));
    Failure::new(RackmemStatus::NotFound, text)
}

/// Opens a lock over regions.
pub(crate) fn open_regions(
    turn: &mut Turn,
    to: To<RackmemRwlock>,
    lock: &LockedRegions,
    making: Option<u64>,
) -> Result<RackmemStatus, Failure> {
    open(turn, to, lock.as_bytes(), lock.room(), making)
}

/// Shows the regions of a lock that is held and mapped, where its pointers say.
pub(crate) fn show(lock: &mut Lock) -> Result<(), Failure> {
    let Some(mapped) = lock.mapped.clone() else { return Ok(()) };
    let writes = matches!(lock.held, Some(Guard::Write(_)));
    look(lock, |regions| mapped.show(regions, writes))?.map_err(Into::into)
}

/// What [`show`] has shown is not any more: before the lock is left, or its list changes. What was written there counts from now on.
pub(crate) fn hide(lock: &mut Lock) {
    let Some(mapped) = lock.mapped.clone() else { return };
    match lock.held {
        Some(Guard::Read(_)) => mapped.hide(),
        // The regions were such when they were shown.
        Some(Guard::Write(_)) => {
            let _ = change(lock, |regions| {
                mapped.take_back(regions);
                Ok(())
            });
        }
        None => {}
    }
}

/// Changes the list of a lock that is held to write; what is mapped of it is what the list is then.
fn change_list<R>(
    lock: &mut Lock,
    work: impl FnOnce(&mut RegionsWriteGuard<'static>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    if !matches!(lock.held, Some(Guard::Write(_))) || lock.mapped.is_none() {
        return change(lock, work);
    }
    hide(lock);
    let done = change(lock, work);
    let shown = show(lock);
    done.and_then(|done| shown.map(|()| done))
}

/// The regions of a lock, which is held to write: they change.
fn change<R>(
    lock: &mut Lock,
    work: impl FnOnce(&mut RegionsWriteGuard<'static>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let guard = match lock.held.take() {
        Some(Guard::Write(guard)) => guard,
        other => {
            lock.held = other;
            return Err(not_held("the lock is not held for writing through this handle: take it to write"));
        }
    };
    let (done, guard) = match RegionsWriteGuard::of_bytes(guard) {
        Ok(mut regions) => (work(&mut regions), regions.into_bytes()),
        Err((why, guard)) => (Err(why.into()), guard),
    };
    lock.held = Some(Guard::Write(guard));
    done
}

/// The same, of whoever may only read: they are looked at.
fn look<R>(lock: &mut Lock, work: impl FnOnce(&RegionsReadGuard<'static>) -> R) -> Result<R, Failure> {
    let Some(Guard::Read(guard)) = lock.held.take_if(|held| matches!(held, Guard::Read(_))) else {
        return change(lock, |regions| Ok(work(regions)));
    };
    let (done, guard) = match RegionsReadGuard::of_bytes(guard) {
        Ok(regions) => (Ok(work(&regions)), regions.into_bytes()),
        Err((why, guard)) => (Err(why.into()), guard),
    };
    lock.held = Some(Guard::Read(guard));
    done
}

/// Creates a lock over up to 64 regions of bytes, at first none, in the memory of node `home`. There is room for `room` bytes: of all
/// regions, in whole words, and 16 more for each. Room that is not used takes memory, and does not travel. It is taken, released, closed
/// and freed as other locks; what these write to `data` is of no use: `rackmem_rwlock_region` says where the regions are. The OS thread
/// that uses `thread`.
///
/// # Safety
/// `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_create_regions(
    thread: RackmemThread,
    home: u16,
    room: usize,
    lock: *mut RackmemRwlock,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(lock, "lock", NO_LOCK) }?;
        let made = LockedRegions::new(turn.handle(), NodeId(home), room)?;
        open_regions(turn, to, &made, None)
    })
}

/// Opens the lock over regions at this address, which `rackmem_rwlock_address` has named, in this or another process; with the room that
/// it was created with. The OS thread that uses `thread`.
///
/// # Safety
/// `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_open_regions(
    thread: RackmemThread,
    address: u64,
    room: usize,
    lock: *mut RackmemRwlock,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(lock, "lock", NO_LOCK) }?;
        let found = LockedRegions::at(turn.handle(), GlobalAddr::from_bits(address), room)?;
        open_regions(turn, to, &found, None)
    })
}

/// How many regions a lock guards that is held, to read or to write. The OS thread that uses its thread.
///
/// # Safety
/// `count` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_regions(lock: RackmemRwlock, count: *mut usize) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(count, "count", 0) }?;
        to.set(look(open, |regions| regions.len())?);
        Ok(RackmemStatus::Ok)
    })
}

/// Where the bytes of a region are, by its number, from 0, and how many, while the lock is held: aligned to 8 bytes. All pointers are void
/// when the lock is released, or the list changes. The OS thread that uses its thread.
///
/// # Safety
/// `data` and `len` may be written. What `data` points to is written only if the lock is held for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_region(
    lock: RackmemRwlock,
    number: usize,
    data: *mut *mut c_void,
    len: *mut usize,
) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| {
        // SAFETY: the caller promises both.
        let (to, to_len) =
            unsafe { (To::cleared(data, "data", std::ptr::null_mut())?, To::cleared(len, "len", 0)?) };
        let (place, count) = look(open, |regions| (regions.place(number), regions.len()))?;
        let place = place.ok_or(RegionsError::NoSuchRegion { number, count })?;
        let mapped = open.mapped.clone();
        let pointer =
            mapped.and_then(|mapped| look(open, |regions| mapped.pointer(regions, number)).transpose());
        let words = open.held.as_ref().expect("it was looked at").words();
        // Words that threads may write to where they are shared; through pointers, too.
        let first = words.as_ptr().cast_mut().cast::<u8>();
        to.set(pointer.transpose()?.unwrap_or(first.wrapping_add(place.start)).cast());
        to_len.set(place.len());
        Ok(RackmemStatus::Ok)
    })
}

/// One more region, of `len` bytes of zeroes, of a lock that is held for writing. `*number` is its number: the last. Pointers to regions
/// are void. `RACKMEM_TOO_MANY`: there are 64. `RACKMEM_TOO_LONG`: it does not fit the room. Then nothing has changed. The OS thread that
/// uses its thread.
///
/// # Safety
/// `number` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_rwlock_region_add(
    lock: RackmemRwlock,
    len: usize,
    number: *mut usize,
) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::at(number, "number") }?;
        to.set(change_list(open, |regions| Ok(regions.push(len)?))?);
        Ok(RackmemStatus::Ok)
    })
}

/// Makes a region longer, with zeroes, or shorter, of a lock that is held for writing. Not one that `rackmem_rwlock_guard` has taken in.
/// Pointers to regions are void. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_region_resize(
    lock: RackmemRwlock,
    number: usize,
    len: usize,
) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| {
        change_list(open, |regions| Ok(regions.resize(number, len)?))?;
        Ok(RackmemStatus::Ok)
    })
}

/// Takes a region away, of a lock that is held for writing: the numbers of those behind it become smaller by one. What it has of memory
/// that `rackmem_rwlock_guard` has taken in is forgotten. Pointers to regions are void. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_region_remove(lock: RackmemRwlock, number: usize) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| {
        change_list(open, |regions| Ok(regions.remove(number)?))?;
        Ok(RackmemStatus::Ok)
    })
}

/// Takes `len` bytes of memory of `rackmem_alloc_guarded` in, as one more region of a lock over regions that is held for writing: they
/// travel with it until `rackmem_rwlock_unguard`, and what is in that memory means nothing meanwhile. The region is the last. Pointers to
/// regions are void. Waits while another lock has that memory. `RACKMEM_OVERLAPS`: this lock has part of it. `RACKMEM_TOO_MANY`,
/// `RACKMEM_TOO_LONG`: as `rackmem_rwlock_region_add`. `RACKMEM_UNALLOCATED`: that is no such memory, or not any more. If it fails,
/// nothing has changed. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_guard(lock: RackmemRwlock, address: u64, len: usize) -> RackmemStatus {
    with::<Lock>(lock.id, |turn, open| {
        let addr = GlobalAddr::from_bits(address);
        if holds(turn, addr, lock.id) {
            // It would wait for itself.
            return Err(Failure::new(
                RackmemStatus::Deadlock,
                "this thread holds another lock over that memory: unlock it first",
            ));
        }
        change_list(open, |regions| Ok(regions.take_in(turn.handle(), addr, len)?))?;
        Ok(RackmemStatus::Ok)
    })
}

/// Gives the bytes of a region back, as they are now, to the memory at this address that `rackmem_rwlock_guard` has taken them from, and
/// takes the region away. The lock is held for writing. Pointers to regions are void. `RACKMEM_NOT_FOUND`: it has taken in nothing
/// there. `RACKMEM_UNALLOCATED`: that memory was freed meanwhile; the region stays. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_unguard(lock: RackmemRwlock, address: u64) -> RackmemStatus {
    with::<Lock>(lock.id, |turn, open| {
        change_list(open, |regions| {
            let addr = Some(GlobalAddr::from_bits(address));
            let number = (0..regions.len()).find(|number| regions.taken_from(*number) == addr);
            Ok(regions.give_back(turn.handle(), number.ok_or_else(|| is_none(address))?)?)
        })?;
        Ok(RackmemStatus::Ok)
    })
}

/// Maps what a lock over regions has taken in (`rackmem_rwlock_guard`). While the lock is held through this handle,
/// `rackmem_rwlock_region` says a pointer that is the same in every process of the rack: `rackmem_pointer_to` of the memory's address. An
/// access while the lock is not held, or a store while it is held to read, ends the process with a line that names the lock. That memory
/// is whole pages, as a multiple of the rack's block size is; whatever takes the lock says `RACKMEM_INVALID_ARGUMENT` if it is not. The
/// mapping ends when the handle is closed. Only processes that have joined map. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_rwlock_map(lock: RackmemRwlock) -> RackmemStatus {
    with::<Lock>(lock.id, |_, open| {
        if open.mapped.is_some() {
            return Ok(RackmemStatus::Ok);
        }
        let regions = open.bytes().regions().ok_or_else(|| {
            Failure::new(
                RackmemStatus::InvalidArgument,
                "the lock is none over regions: nothing of it is mapped",
            )
        })?;
        open.mapped = Some(regions.map()?);
        // It may be held already.
        if open.held.is_some() {
            show(open).inspect_err(|_| open.mapped = None)?;
        }
        Ok(RackmemStatus::Ok)
    })
}

/// Allocates `len` bytes of memory at node `home` that locks over regions take in (`rackmem_rwlock_guard`). What is in it is not
/// defined. It is taken in as a whole: all say this length. The OS thread that uses `thread`.
///
/// # Safety
/// `address` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_alloc_guarded(
    thread: RackmemThread,
    len: u64,
    home: u16,
    address: *mut u64,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(address, "address", 0) }?;
        to.set(turn.handle().alloc(len, NodeId(home), Discipline::Locked)?.bits());
        Ok(RackmemStatus::Ok)
    })
}

/// Gives memory of `rackmem_alloc_guarded` back, of this length, from whichever node; a lock that has taken it in keeps the bytes. The OS
/// thread that uses `thread`.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_free_guarded(thread: RackmemThread, address: u64, len: usize) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        turn.handle().rwlock(GlobalAddr::from_bits(address), len)?.free(turn.handle())?;
        Ok(RackmemStatus::Ok)
    })
}
