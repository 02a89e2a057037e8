//! Objects that anybody reads whole while others write them.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::time::{Duration, Instant};

use rackmem::{ByteObjects, GlobalAddr, NodeId, Retry};

use crate::handles::{Align128, Slot, Turn, ask, close, end, kind, with, with_thread};
use crate::pointer::{To, bytes, bytes_mut, set_if_wanted};
use crate::rack::RackmemThread;
use crate::status::{Failure, RackmemStatus};

/// Objects of one length in the memory of one node. They belong to the `rackmem_thread` that they were opened through; other threads
/// open the same objects by their address.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemObjects {
    /// 0: null.
    pub id: u64,
}

/// Open objects.
pub(crate) struct ObjectsHere(ByteObjects);

kind!(ObjectsHere, 7, Align128, 1 << 16);

pub(crate) const NO_OBJECTS: RackmemObjects = RackmemObjects { id: 0 };

pub(crate) fn open(
    turn: &Turn,
    to: To<RackmemObjects>,
    objects: ByteObjects,
) -> Result<RackmemStatus, Failure> {
    to.set(RackmemObjects { id: Slot::open(ObjectsHere(objects), Some(turn.slot()))? });
    Ok(RackmemStatus::Ok)
}

/// Allocates `count` objects of `len` bytes of zeroes (at most 1 MiB) in the memory of node `home`. The OS thread that uses `thread`.
///
/// # Safety
/// `objects` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_objects_create(
    thread: RackmemThread,
    home: u16,
    count: usize,
    len: usize,
    objects: *mut RackmemObjects,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(objects, "objects", NO_OBJECTS) }?;
        let made = turn.handle().byte_objects(count, len, NodeId(home))?;
        open(turn, to, made)
    })
}

/// Opens the objects at this address, which `rackmem_objects_address` has named, in this or another process. The OS thread that uses
/// `thread`.
///
/// # Safety
/// `objects` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_objects_open(
    thread: RackmemThread,
    address: u64,
    objects: *mut RackmemObjects,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(objects, "objects", NO_OBJECTS) }?;
        let found = turn.handle().byte_objects_at(GlobalAddr::from_bits(address))?;
        open(turn, to, found)
    })
}

/// Forgets objects here; they stay, for others. Closing null does nothing. The OS thread that uses their thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_objects_close(objects: RackmemObjects) -> RackmemStatus {
    close::<ObjectsHere>(objects.id, |_, _| Ok(()))
}

/// Gives objects back, once those who write them are done, and closes the handle. Operations on them are refused from then on, through
/// whichever handle. If it fails, the handle stays open. The OS thread that uses their thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_objects_free(objects: RackmemObjects) -> RackmemStatus {
    end::<ObjectsHere>(objects.id, |turn, objects| Ok(objects.0.clone().free(turn.handle())?))
}

/// The address of objects, for other threads and processes; 0 if there is no such handle. The OS thread that uses their thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_objects_address(objects: RackmemObjects) -> u64 {
    ask::<ObjectsHere, _>(objects.id, |objects| objects.0.addr().bits())
}

/// How many objects there are; 0 if there is no such handle. The OS thread that uses their thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_objects_count(objects: RackmemObjects) -> usize {
    ask::<ObjectsHere, _>(objects.id, |objects| objects.0.count())
}

/// Bytes of each object; 0 if there is no such handle. The OS thread that uses their thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_objects_len(objects: RackmemObjects) -> usize {
    ask::<ObjectsHere, _>(objects.id, |objects| objects.0.object_len())
}

unsafe fn read(
    objects: RackmemObjects,
    index: usize,
    into: *mut c_void,
    len: usize,
    version: *mut u64,
    retry: Retry,
) -> RackmemStatus {
    with::<ObjectsHere>(objects.id, |turn, objects| {
        // SAFETY: the caller promises it.
        let into = unsafe { bytes_mut(into, len, "into") }?;
        let found = objects.0.read(turn.handle(), index, into, retry)?;
        // SAFETY: the caller promises it.
        unsafe { set_if_wanted(version, found) };
        Ok(RackmemStatus::Ok)
    })
}

/// Reads an object whole: `len` is its length. A read that a writer comes into is tried again, `attempts` times in all (0: until it
/// succeeds); then `RACKMEM_BUSY`. `*version` is its version (null: not wanted). After a failure there may be anything at `into`. The
/// OS thread that uses their thread.
///
/// # Safety
/// `len` bytes may be written at `into`; `version` is null, or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_objects_read(
    objects: RackmemObjects,
    index: usize,
    into: *mut c_void,
    len: usize,
    attempts: u32,
    version: *mut u64,
) -> RackmemStatus {
    let retry = match attempts.checked_sub(1) {
        None => Retry::Forever,
        Some(more) => Retry::Times(more),
    };
    // SAFETY: passed on.
    unsafe { read(objects, index, into, len, version, retry) }
}

/// The same, where no attempt begins more than so many nanoseconds from now. The OS thread that uses their thread.
///
/// # Safety
/// As `rackmem_objects_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_objects_timedread(
    objects: RackmemObjects,
    index: usize,
    into: *mut c_void,
    len: usize,
    nanoseconds: u64,
    version: *mut u64,
) -> RackmemStatus {
    let late = Instant::now().checked_add(Duration::from_nanos(nanoseconds));
    let retry = late.map_or(Retry::Forever, Retry::Until);
    // SAFETY: passed on.
    unsafe { read(objects, index, into, len, version, retry) }
}

/// Writes `len` bytes of an object from byte `at` on, as a whole for all who read it. `*version` is the version that it has then (null:
/// not wanted). The OS thread that uses their thread.
///
/// # Safety
/// There are `len` bytes at `from`; `version` is null, or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_objects_write(
    objects: RackmemObjects,
    index: usize,
    at: usize,
    from: *const c_void,
    len: usize,
    version: *mut u64,
) -> RackmemStatus {
    with::<ObjectsHere>(objects.id, |turn, objects| {
        // SAFETY: the caller promises it.
        let from = unsafe { bytes(from, len, "from") }?;
        let written = objects.0.write(turn.handle(), index, at, from)?;
        // SAFETY: the caller promises it.
        unsafe { set_if_wanted(version, written) };
        Ok(RackmemStatus::Ok)
    })
}

/// Writes all of an object (`len` is its length) if it still has the version `expected`, which a read has returned; otherwise, and if
/// somebody is writing it, `RACKMEM_CHANGED`: read it again. That is how an object is changed by what is in it. The OS thread that uses
/// their thread.
///
/// # Safety
/// As `rackmem_objects_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_objects_write_if(
    objects: RackmemObjects,
    index: usize,
    expected: u64,
    from: *const c_void,
    len: usize,
    version: *mut u64,
) -> RackmemStatus {
    with::<ObjectsHere>(objects.id, |turn, objects| {
        // SAFETY: the caller promises it.
        let from = unsafe { bytes(from, len, "from") }?;
        let Some(written) = objects.0.write_if(turn.handle(), index, expected, from)? else {
            let text = format_args!("object {index} has not version {expected} any more: read it again");
            return Err(Failure::new(RackmemStatus::Changed, text));
        };
        // SAFETY: the caller promises it.
        unsafe { set_if_wanted(version, written) };
        Ok(RackmemStatus::Ok)
    })
}
