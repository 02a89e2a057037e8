//! Coherent memory: allocations, bytes, words, and the locks of blocks.
#![allow(unsafe_code)]

use std::ffi::c_void;

use rackmem::{BlockLock, Discipline, GlobalAddr, LockMode, NodeId, WaitingAgent};

use crate::handles::{Align64, Slot, close, kind, with, with_thread};
use crate::pointer::{To, bytes, bytes_mut};
use crate::rack::{RackmemThread, Thread};
use crate::status::{Failure, RackmemStatus};

/// A block's lock that is held. It belongs to the `rackmem_thread` that has taken it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RackmemBlockLock {
    /// 0: null.
    pub id: u64,
}

/// It stays where it is: it is large.
pub(crate) struct BlockLocked {
    lock: Box<BlockLock>,
}

kind!(BlockLocked, 3, Align64, 1 << 12);

const fn addr(address: u64) -> GlobalAddr {
    GlobalAddr::from_bits(address)
}

/// Allocates `len` bytes of zeroes of coherent memory at node `home`. Up to a block, they lie inside one; they are aligned to at least
/// 16 bytes. `*address` is good on all nodes; it is 0 on failure. The OS thread that uses `thread`.
///
/// # Safety
/// `address` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_alloc(
    thread: RackmemThread,
    len: u64,
    home: u16,
    address: *mut u64,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(address, "address", 0) }?;
        to.set(turn.handle().alloc(len, NodeId(home), Discipline::Coherent)?.bits());
        Ok(RackmemStatus::Ok)
    })
}

/// The same, of memory that outlives nodes: in a rack with copies, so many nodes keep it, `near` first. When a node dies, a prefix of
/// what it wrote there survives: all that it has synced (`rackmem_sync`), all that others have seen, and nothing without what it wrote
/// before. `docs/copies.md` says it in full. `RACKMEM_INVALID_ARGUMENT`, too, if the rack has no copies. The OS thread that uses `thread`.
///
/// # Safety
/// `address` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_alloc_with_copies(
    thread: RackmemThread,
    len: u64,
    near: u16,
    address: *mut u64,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(address, "address", 0) }?;
        to.set(turn.handle().alloc_with_copies(len, NodeId(near))?.bits());
        Ok(RackmemStatus::Ok)
    })
}

/// Waits until all that this node has written to memory with copies survives the node: what any of its threads wrote before the call.
/// The OS thread that uses `thread`.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_sync(thread: RackmemThread) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        turn.handle().sync()?;
        Ok(RackmemStatus::Ok)
    })
}

/// From now on, what this thread allocates of coherent memory has copies, if `keep` is true, or none: that of `rackmem_alloc`, and
/// values and regions that it gives names to. So have locks that it makes, with a name or without. `RACKMEM_INVALID_ARGUMENT` if the rack has no copies. The OS thread that uses `thread`.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_keep_copies(thread: RackmemThread, keep: bool) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        turn.handle().keep_copies(keep)?;
        Ok(RackmemStatus::Ok)
    })
}

/// Gives an allocation of `rackmem_alloc` or `rackmem_alloc_with_copies` back, from whichever node. Words, objects, locks and chains have a function of their own for
/// that. The OS thread that uses `thread`.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_free(thread: RackmemThread, address: u64) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        turn.handle().free(addr(address))?;
        Ok(RackmemStatus::Ok)
    })
}

/// Reads bytes of coherent memory, from any address of an allocation. What lies inside one block is read as a whole, longer ranges
/// block by block. The OS thread that uses `thread`.
///
/// # Safety
/// `len` bytes may be written at `into`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_read(
    thread: RackmemThread,
    address: u64,
    into: *mut c_void,
    len: usize,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        turn.handle().read(addr(address), unsafe { bytes_mut(into, len, "into") }?)?;
        Ok(RackmemStatus::Ok)
    })
}

/// Writes bytes of coherent memory. What lies inside one block is written as a whole, longer ranges block by block. The OS thread
/// that uses `thread`.
///
/// # Safety
/// There are `len` bytes at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_write(
    thread: RackmemThread,
    address: u64,
    from: *const c_void,
    len: usize,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        turn.handle().write(addr(address), unsafe { bytes(from, len, "from") }?)?;
        Ok(RackmemStatus::Ok)
    })
}

/// Reads a word of coherent memory: 8 bytes at a multiple of 8. The OS thread that uses `thread`.
///
/// # Safety
/// `value` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_read_word(
    thread: RackmemThread,
    address: u64,
    value: *mut u64,
) -> RackmemStatus {
    if let Some(slot) = Slot::<Thread>::find(thread.id)
        && !value.is_null()
        // SAFETY: the handle is open, and the caller is the one OS thread that uses it; no call has its turn.
        && let Some(found) = unsafe { slot.alone() }.handle.read_word_here(addr(address))
    {
        // SAFETY: the caller promises it.
        unsafe { value.write(found) };
        return RackmemStatus::Ok;
    }
    // SAFETY: passed on.
    unsafe { read_word_missing(thread, address, value) }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn read_word_missing(
    thread: RackmemThread,
    address: u64,
    value: *mut u64,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller of the caller promises it.
        let to = unsafe { To::at(value, "value") }?;
        to.set(turn.handle().read_word(addr(address))?);
        Ok(RackmemStatus::Ok)
    })
}

/// Writes a word of coherent memory. The OS thread that uses `thread`.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_write_word(thread: RackmemThread, address: u64, value: u64) -> RackmemStatus {
    let Some(slot) = Slot::<Thread>::find(thread.id) else {
        return write_word_missing(thread, address, value);
    };
    // SAFETY: the handle is open, and the caller is the one OS thread that uses it; no call has its turn.
    match unsafe { slot.alone() }.handle.write_word_here(addr(address), value) {
        Ok(()) => RackmemStatus::Ok,
        Err(None) => write_word_missing(thread, address, value),
        Err(Some(agent)) => tell(thread, agent),
    }
}

#[cold]
#[inline(never)]
fn tell(thread: RackmemThread, agent: WaitingAgent) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        turn.handle().tell(agent);
        Ok(RackmemStatus::Ok)
    })
}

#[cold]
#[inline(never)]
extern "C" fn write_word_missing(thread: RackmemThread, address: u64, value: u64) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        turn.handle().write_word(addr(address), value)?;
        Ok(RackmemStatus::Ok)
    })
}

unsafe fn take(
    thread: RackmemThread,
    address: u64,
    mode: LockMode,
    once: bool,
    lock: *mut RackmemBlockLock,
) -> RackmemStatus {
    with_thread(thread.id, |turn| {
        // SAFETY: the caller promises it.
        let to = unsafe { To::cleared(lock, "lock", RackmemBlockLock { id: 0 }) }?;
        let (slot, handle) = (turn.slot(), turn.handle());
        let taken = match once {
            true => handle.try_lock_block(addr(address), mode)?,
            false => Some(handle.lock_block(addr(address), mode)?),
        };
        let Some(lock) = taken else {
            return Err(Failure::new(
                RackmemStatus::Busy,
                "somebody else has the block's lock: try again later",
            ));
        };
        to.set(RackmemBlockLock { id: Slot::open(BlockLocked { lock: Box::new(lock) }, Some(slot))? });
        Ok(RackmemStatus::Ok)
    })
}

/// Waits for the lock of the block that the address is in, with other readers. It excludes others who take the lock, not accesses: who
/// locks is a convention of the application. A thread that takes a lock twice waits for itself. The OS thread that uses `thread`.
///
/// # Safety
/// `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_block_read(
    thread: RackmemThread,
    address: u64,
    lock: *mut RackmemBlockLock,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(thread, address, LockMode::Read, false, lock) }
}

/// Waits for the lock of a block, alone. Otherwise as `rackmem_block_read`.
///
/// # Safety
/// `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_block_write(
    thread: RackmemThread,
    address: u64,
    lock: *mut RackmemBlockLock,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(thread, address, LockMode::Write, false, lock) }
}

/// Takes the lock of a block to read, unless somebody holds it to write: then `RACKMEM_BUSY`. Otherwise as `rackmem_block_read`.
///
/// # Safety
/// `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_block_tryread(
    thread: RackmemThread,
    address: u64,
    lock: *mut RackmemBlockLock,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(thread, address, LockMode::Read, true, lock) }
}

/// Takes the lock of a block to write, unless somebody holds it: then `RACKMEM_BUSY`. Otherwise as `rackmem_block_read`.
///
/// # Safety
/// `lock` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_block_trywrite(
    thread: RackmemThread,
    address: u64,
    lock: *mut RackmemBlockLock,
) -> RackmemStatus {
    // SAFETY: passed on.
    unsafe { take(thread, address, LockMode::Write, true, lock) }
}

/// Of the lock of a block with copies that is held: whether the writer before has died, or was taken for dead, with its node, before it
/// released the lock. `*died` says so until somebody has released it to write, and `*node` which node it was, the last one if there are
/// several. A part of what it had written may be there. The OS thread that uses its thread.
///
/// # Safety
/// `died` and `node` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rackmem_block_writer_that_died(
    lock: RackmemBlockLock,
    died: *mut bool,
    node: *mut u16,
) -> RackmemStatus {
    with::<BlockLocked>(lock.id, |_, open| {
        // SAFETY: the caller promises it.
        let (died, to) = unsafe { (To::at(died, "died")?, To::at(node, "node")?) };
        let found = open.lock.writer_that_died();
        died.set(found.is_some());
        to.set(found.map_or(0, |node| node.0));
        Ok(RackmemStatus::Ok)
    })
}

/// Releases the lock of a block, and closes its handle. Of null, nothing. The OS thread that uses its thread.
#[unsafe(no_mangle)]
pub extern "C" fn rackmem_block_unlock(lock: RackmemBlockLock) -> RackmemStatus {
    close::<BlockLocked>(lock.id, |_, _| Ok(()))
}
