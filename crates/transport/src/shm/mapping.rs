//! Memory that processes share: a sealed memfd, and a view of it as atomic words.
//!
//! What must always hold: a [`Mapping`] covers
//! memory that exists for as long as the mapping does (the seals forbid everybody to shrink the file, so that no
//! access can fault), and it is only ever seen as atomic words: whatever another process writes there at whatever
//! moment is a value, never undefined behaviour.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate, memfd_create,
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// What `statfs` says of memory in ordinary pages (`TMPFS_MAGIC`). There are memfds in huge pages too, of which there
/// may be none left at the moment of an access.
const ORDINARY_MEMORY: u64 = 0x0102_1994;

/// Bytes of the largest memory whose pages are provided before they are used: what that takes is less than a millisecond.
const MOST_POPULATED: usize = 4 << 20;

/// What shared memory may be seen as. Every bit pattern is a value of an atomic integer, and racing accesses to it
/// are defined: that is what the unsafe code below relies on, so nothing else may be added here.
pub(crate) trait Word: Sync + 'static {}
impl Word for AtomicU32 {}
impl Word for AtomicU64 {}

/// A memfd, mapped for reading and writing, as words of one kind.
#[derive(Debug)]
pub(crate) struct Mapping<W: Word> {
    start: NonNull<W>,
    bytes: usize,
    words: PhantomData<W>,
}

// SAFETY: a mapping owns its range of addresses, and gives access to it only as `&[W]`, which threads may share.
unsafe impl<W: Word> Send for Mapping<W> {}
// SAFETY: as above.
unsafe impl<W: Word> Sync for Mapping<W> {}

impl<W: Word> Mapping<W> {
    /// New memory of so many bytes, all zero. Its size is sealed before anybody else can see it.
    pub(crate) fn create(name: &str, bytes: usize) -> io::Result<(OwnedFd, Self)> {
        let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, bytes as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = Self::map(&file, bytes)?;
        Ok((file, mapping))
    }

    /// Memory that a peer made. It is refused if the peer could shrink it under us, if it is no ordinary memory, and if
    /// it is empty or larger than `most` bytes.
    pub(crate) fn open(file: impl AsFd, most: usize) -> io::Result<Self> {
        // A file that is no memfd has no seals to get, and is refused here.
        if !fcntl_get_seals(&file)?.contains(SealFlags::SHRINK) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "shared memory that can be shrunk"));
        }
        if fstatfs(&file)?.f_type as u64 != ORDINARY_MEMORY {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "shared memory in huge pages"));
        }
        let bytes = usize::try_from(fstat(&file)?.st_size).unwrap_or(0);
        if bytes < size_of::<W>() || bytes > most {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("shared memory of {bytes} bytes"),
            ));
        }
        Self::map(file, bytes)
    }

    /// The same for memory that came with a promise to stay as it is: its size and its seals are final, and it is whole pages of
    /// this many bytes.
    pub(crate) fn open_finished(file: impl AsFd, page: usize, most: usize) -> io::Result<Self> {
        if !fcntl_get_seals(&file)?.contains(SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "shared memory without its seals"));
        }
        if !(fstat(&file)?.st_size as u64).is_multiple_of(page as u64) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "shared memory that is no whole pages"));
        }
        Self::open(file, most)
    }

    /// Has the kernel provide the pages now, in one call, and not in a fault each: where there are not many of them. A large
    /// memory costs what is used of it.
    pub(crate) fn populate(&self) {
        if self.bytes <= MOST_POPULATED {
            // SAFETY: the range is this mapping's. Pages that are there stay as they are.
            let done = unsafe { madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxPopulateWrite) };
            // A kernel that does not know this provides them later.
            let _ = done;
        }
    }

    fn map(file: impl AsFd, bytes: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses a free range of addresses, so nothing that exists is replaced.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { start, bytes, words: PhantomData })
    }

    /// All of it.
    pub(crate) const fn words(&self) -> &[W] {
        // SAFETY: the range is mapped for reading and writing until `drop`, which needs the mapping itself, and the
        // file under it cannot be shrunk (sealed by `create`, checked by `open`). It starts on a page, so it is
        // aligned. Every bit pattern is a value of `W`, and what other threads and processes do to it meanwhile is
        // what atomics are for (see `Word`).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes / size_of::<W>()) }
    }
}

impl<W: Word> Drop for Mapping<W> {
    fn drop(&mut self) {
        // SAFETY: the range came from `mmap` with this length, and nobody borrows from `self` any more.
        let done = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        debug_assert!(done.is_ok(), "unmapping {} bytes: {done:?}", self.bytes);
    }
}
