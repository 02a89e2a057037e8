//! Who has shared memory mapped, as the kernel knows it.
//!
//! Each node that obtains a memory gets an open file description of its own, made by the memory's maker, who locks the byte of
//! the node's number in it: a lock of the description (`F_OFD_SETLK`), not of a process. A mapping keeps its description, and
//! with it the lock, whatever becomes of the descriptor; the lock goes when the last mapping does, at the latest when the process
//! is dead. It goes by no other way: not while the process is stopped, slow, or believed to be dead. So what must
//! always hold: whoever gets the lock on a node's byte knows that no process of that node can store in the memory any more, and
//! of one node at most one process has it mapped.
//!
//! Unsafe code: `fcntl` with a range, which rustix does not have.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};

use crate::PeerId;

/// Locks the byte of a peer, unless a process of that peer, or another claim, has it.
pub(crate) fn take(file: &OwnedFd, peer: PeerId) -> io::Result<bool> {
    match lock(file, peer, libc::F_WRLCK) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Unlocks it.
pub(crate) fn give_back(file: &OwnedFd, peer: PeerId) {
    let done = lock(file, peer, libc::F_UNLCK);
    debug_assert!(done.is_ok(), "unlocking: {done:?}");
}

/// A new description of the file, with the lock; none if it is taken.
pub(crate) fn lend(file: &OwnedFd, to: PeerId) -> io::Result<Option<OwnedFd>> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let lent = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    Ok(take(&lent, to)?.then_some(lent))
}

fn lock(file: &OwnedFd, peer: PeerId, kind: i32) -> io::Result<()> {
    // SAFETY: plain numbers, for which zeroes are valid.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as _;
    range.l_whence = libc::SEEK_SET as _;
    range.l_start = peer.index() as _;
    range.l_len = 1;
    // SAFETY: the descriptor is open for as long as it is borrowed, and the kernel reads one `flock` from the address of a
    // value that lives through the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
