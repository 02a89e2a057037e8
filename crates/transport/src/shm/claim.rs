//! Who has shared memory mapped, as the kernel knows it.
//!
//! Each node, and each application, that obtains a memory gets an open file description of its own, made by the memory's maker, who
//! locks the byte of its place in it, for an application the first that is free: a lock of the description (`F_OFD_SETLK`), not of a process. A mapping keeps its description, and
//! with it the lock, whatever becomes of the descriptor; the lock goes when the last mapping does, at the latest when the process
//! is dead. It goes by no other way: not while the process is stopped, slow, or believed to be dead. So what must
//! always hold: whoever gets the lock on a byte knows that no process whose place that is can store in the memory any more, and
//! at most one has it mapped.
//!
//! Unsafe code: `fcntl` with a range, which rustix does not have.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};

use crate::sharing::Mapper;

/// Locks the byte of a place, unless a process whose place it is, or another claim, has it.
pub(crate) fn take(file: &OwnedFd, place: u8) -> io::Result<bool> {
    match lock(file, place, libc::F_WRLCK) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Unlocks it.
pub(crate) fn give_back(file: &OwnedFd, place: u8) {
    let done = lock(file, place, libc::F_UNLCK);
    debug_assert!(done.is_ok(), "unlocking: {done:?}");
}

/// A new description of the file, with the lock of the first of these places that is free; none if all are taken.
pub(crate) fn lend(
    file: &OwnedFd,
    places: impl IntoIterator<Item = Mapper>,
) -> io::Result<Option<(OwnedFd, Mapper)>> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let lent = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for mapper in places {
        if take(&lent, mapper.place())? {
            return Ok(Some((lent, mapper)));
        }
    }
    Ok(None)
}

fn lock(file: &OwnedFd, place: u8, kind: i32) -> io::Result<()> {
    // SAFETY: plain numbers, for which zeroes are valid.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as _;
    range.l_whence = libc::SEEK_SET as _;
    range.l_start = place.into();
    range.l_len = 1;
    // SAFETY: the descriptor is open for as long as it is borrowed, and the kernel reads one `flock` from the address of a
    // value that lives through the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
