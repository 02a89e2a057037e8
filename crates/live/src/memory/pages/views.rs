//! One sparse file of memory, and two views of it: the application's, in which every access is permitted page by page, and
//! the engine's, which is always writable.
//!
//! What must always hold:
//! - A byte of the rack's memory has the same address in the application's view of every process that maps it, and the same
//!   offset in the file.
//! - An access in the application's view finds a page that was allowed there, or waits in a fault, or ends the process. It
//!   never finds zeroes that nobody wrote: the range is reserved without any right before it is mapped and after, and no
//!   child of this process has it.
//! - The file is never shrunk while views exist, so the engine's accesses do not fault.
//!
//! Unsafe code: mapping, and slices of what is mapped.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create,
};
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap,
};

use super::userfault::{Fault, Userfault};
use super::{Refused, Right, last_words};

/// A range of addresses that nothing else gets, without any right.
pub(super) struct Reserved {
    start: NonNull<c_void>,
    len: usize,
    /// Parts of it that somebody uses: where they begin, and end.
    claims: Mutex<BTreeMap<usize, usize>>,
}

// SAFETY: it owns a range of addresses, and gives no access to it.
unsafe impl Send for Reserved {}
// SAFETY: as above.
unsafe impl Sync for Reserved {}

/// Ranges of this process, and what they are for: to say who was there first.
static TAKEN: Mutex<Vec<(Range<usize>, String)>> = Mutex::new(Vec::new());

impl Reserved {
    /// Reserves `len` bytes at `start`, for whom it says.
    pub(super) fn new(start: usize, len: usize, whom: String) -> Result<Self, Refused> {
        let range = start..start + len;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let overlaps = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        if let Some((at, by)) = taken.iter().find(|(at, _)| overlaps(at)) {
            return Err(Refused::Taken {
                start,
                len,
                by: format!("{by} of this process, at {:#x}", at.start),
            });
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: the kernel refuses a range in which something is, so nothing is replaced.
        let mapped = unsafe { mmap_anonymous(start as *mut c_void, len, ProtFlags::empty(), flags) };
        match mapped {
            // An older kernel takes the address for advice.
            Ok(at) if at.addr() != start => {
                // SAFETY: the range was mapped a moment ago, and nobody knows of it.
                let _ = unsafe { munmap(at, len) };
                Err(Refused::Taken { start, len, by: who_has(&range) })
            }
            Ok(at) => {
                taken.push((range, whom));
                let start = NonNull::new(at).expect("nobody asks for address 0");
                let this = Self { start, len, claims: Mutex::default() };
                this.leave_out();
                Ok(this)
            }
            Err(rustix::io::Errno::EXIST) => Err(Refused::Taken { start, len, by: who_has(&range) }),
            Err(why) => Err(Refused::NoAddresses { start, len, why: why.into() }),
        }
    }

    pub(super) fn start(&self) -> usize {
        self.start.as_ptr().addr()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.start()..self.start() + self.len
    }

    /// The offset of an address in it.
    pub(super) fn offset(&self, address: usize) -> Option<usize> {
        address.checked_sub(self.start()).filter(|offset| *offset < self.len)
    }

    fn at(&self, offset: usize, len: usize) -> *mut c_void {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "{offset:#x}+{len:#x}");
        self.start.as_ptr().wrapping_byte_add(offset)
    }

    fn claims(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a part of it, if nobody has any of that.
    pub(super) fn claim(&self, offset: usize, len: usize) -> bool {
        let (mut claims, end) = (self.claims(), offset + len);
        let is_free = claims.range(..end).next_back().is_none_or(|(_, taken)| *taken <= offset);
        if is_free {
            claims.insert(offset, end);
        }
        is_free
    }

    /// Ends that.
    pub(super) fn disclaim(&self, offset: usize) {
        self.claims().remove(&offset);
    }

    /// Where the process sees what is at this offset.
    pub(super) fn pointer(&self, offset: usize, len: usize) -> *mut u8 {
        self.at(offset, len).cast()
    }

    /// Says what the process may do with pages of its own in a claimed part.
    pub(super) fn permit(&self, offset: usize, len: usize, right: Right) -> io::Result<()> {
        let rights = match right {
            Right::None => MprotectFlags::empty(),
            Right::Read => MprotectFlags::READ,
            Right::Write => MprotectFlags::READ | MprotectFlags::WRITE,
        };
        // SAFETY: the range is ours. Whoever has pointers into it was told when they may be used.
        unsafe { mprotect(self.at(offset, len), len, rights) }.map_err(io::Error::from)
    }

    /// Copies bytes to such pages, which may be written.
    pub(super) fn fill(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: the range is ours, `bytes` are not in it (nobody has a reference to what may be withdrawn), and the caller has permitted
        // writing. Threads that follow pointers there before they are inside the lock have been told not to.
        unsafe { self.pointer(offset, bytes.len()).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Copies bytes from such pages, which may be read.
    pub(super) fn copy_to(&self, offset: usize, bytes: &mut [u8]) {
        // SAFETY: as above.
        unsafe { self.pointer(offset, bytes.len()).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Gives the memory of such pages back: they are zeroes.
    pub(super) fn give_back(&self, offset: usize, len: usize) {
        // SAFETY: the range is ours, and nobody uses its pages any more.
        let done = unsafe { madvise(self.at(offset, len), len, Advice::LinuxDontNeed) };
        // What stays takes memory, and nothing else.
        let _ = done;
    }

    /// A child would not wait in faults, and a dump of terabytes helps nobody.
    fn leave_out(&self) {
        leave_out(self.start.as_ptr(), self.len);
    }
}

fn leave_out(start: *mut c_void, len: usize) {
    for advice in [Advice::LinuxDontFork, Advice::LinuxDontDump, Advice::LinuxNoHugepage] {
        // SAFETY: the range is the caller's, and none of these changes what is in it.
        let done = unsafe { madvise(start, len, advice) };
        // A kernel without huge pages refuses the last one.
        let _ = done;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let (start, mut taken) = (self.start(), TAKEN.lock().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: the range is ours, and whoever has slices of it holds what owns this.
        let _ = unsafe { munmap(self.start.as_ptr(), self.len) };
        taken.retain(|(range, _)| range.start != start);
    }
}

/// What the system says of the first mapping in a range.
fn who_has(range: &Range<usize>) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let overlaps = |line: &&str| {
        let (start, rest) = line.split_once('-')?;
        let (end, _) = rest.split_once(' ')?;
        let at = |text| usize::from_str_radix(text, 16).ok();
        Some(at(start)? < range.end && at(end)? > range.start)
    };
    let line = maps.lines().find(|line| overlaps(line) == Some(true));
    line.map_or_else(
        || String::from("something unknown"),
        |line| format!("`{}`", line.split_whitespace().collect::<Vec<_>>().join(" ")),
    )
}

/// The file, its views, and the faults of the application's.
pub(super) struct Views {
    reserved: Arc<Reserved>,
    file: OwnedFd,
    engine: NonNull<AtomicU64>,
    faults: Userfault,
}

// SAFETY: it owns the engine's view, which is seen as atomic words alone.
unsafe impl Send for Views {}
// SAFETY: as above.
unsafe impl Sync for Views {}

impl Views {
    /// A file for the whole of a reserved range. It takes memory where pages are written.
    pub(super) fn new(reserved: Arc<Reserved>, in_place: bool) -> Result<Self, Refused> {
        let faults = Userfault::open(in_place)?;
        let file = memfd_create("rackmem pages", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|why| Refused::Failed(why.into()))?;
        ftruncate(&file, reserved.len as u64).map_err(|why| Refused::NoFile(why.into()))?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|why| Refused::Failed(why.into()))?;
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
        // SAFETY: the kernel chooses a free range of addresses, so nothing that exists is replaced.
        let engine = unsafe { mmap(std::ptr::null_mut(), reserved.len, rights, flags, &file, 0) };
        let engine =
            engine.map_err(|why| Refused::NoAddresses { start: 0, len: reserved.len, why: why.into() })?;
        leave_out(engine, reserved.len);
        let engine = NonNull::new(engine.cast()).expect("the kernel does not choose address 0");
        Ok(Self { reserved, file, engine, faults })
    }

    /// The addresses of the application's view.
    pub(super) const fn reserved(&self) -> &Arc<Reserved> {
        &self.reserved
    }

    /// Where the application sees what is at this offset.
    pub(super) fn address(&self, offset: usize) -> usize {
        self.reserved.start() + offset
    }

    /// The offset of an address in the application's view.
    pub(super) fn offset(&self, address: usize) -> Option<usize> {
        self.reserved.offset(address)
    }

    /// What is at this offset, as the engine sees it.
    pub(super) fn words(&self, offset: usize, len: usize) -> &[AtomicU64] {
        assert!(offset.is_multiple_of(8) && offset + len <= self.reserved.len, "{offset:#x}+{len:#x}");
        // SAFETY: the range lies in the engine's view, which is mapped for reading and writing for as long as `self` is
        // there; the file cannot be shrunk, so no access faults; and what others do to it is what atomics are for.
        unsafe { std::slice::from_raw_parts(self.engine.as_ptr().add(offset / 8), len / 8) }
    }

    /// The same, as the application sees it: an access waits until the rack allows it.
    ///
    /// # Panics
    /// If the range is not open ([`Views::open`]): the caller keeps it so for as long as it has the slice.
    pub(super) fn seen(&self, offset: usize, len: usize) -> &[AtomicU64] {
        let start = self.reserved.at(offset, len);
        assert!(offset.is_multiple_of(8), "{offset:#x} begins a word");
        // SAFETY: the range is reserved for as long as `self` is there, and mapped while it is open. An access finds an allowed
        // page, or waits, or ends the process (see the module's head), and pages hold atomic words.
        unsafe { std::slice::from_raw_parts(start.cast(), len / 8) }
    }

    /// Opens a range of whole pages in the application's view: from now on its accesses fault.
    pub(super) fn open(&self, offset: usize, len: usize) -> io::Result<()> {
        last_words::prepare(self.reserved.range());
        let (start, rights) = (self.reserved.at(offset, len), ProtFlags::READ | ProtFlags::WRITE);
        let flags = MapFlags::SHARED | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: replaces a part of our own reservation, in which nobody has anything.
        unsafe { mmap(start, len, rights, flags, &self.file, offset as u64) }?;
        leave_out(start, len);
        self.faults.register(start.addr() as u64, len as u64).inspect_err(|_| self.close(offset, len))
    }

    /// Closes it again: an access ends the process.
    pub(super) fn close(&self, offset: usize, len: usize) {
        let start = self.reserved.at(offset, len);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: replaces a part of our own reservation by one without rights; whoever could have a slice of it holds what
        // calls this when it is dropped.
        let closed = unsafe { mmap_anonymous(start, len, ProtFlags::empty(), flags) };
        self.done(closed.map(drop).map_err(io::Error::from), offset);
        leave_out(start, len);
        // Whoever waits there tries again, and ends the process.
        self.wake(offset, len);
    }

    /// Lets the application read a range of written pages, or read and write, where it could do neither. False if the range is
    /// closed.
    pub(super) fn allow(&self, offset: usize, len: usize, writes: bool) -> bool {
        let (mut at, end) = (self.address(offset) as u64, (self.address(offset) + len) as u64);
        match self.on_open(self.faults.allow(at, end - at, writes), offset) {
            None => return false,
            Some(true) => return true,
            Some(false) => {}
        }
        // Somebody has touched a page of it by other ways (`madvise`): what is there goes, one page at a time.
        self.withdraw(offset, len);
        while at < end {
            if self.on_open(self.faults.allow(at, PAGE as u64, writes), offset).is_none() {
                return false;
            }
            at += PAGE as u64;
        }
        true
    }

    /// Lets it write where it can read, or only read from now on. False if the range is closed.
    pub(super) fn protect(&self, offset: usize, len: usize, protect: bool) -> bool {
        let done = self.faults.protect(self.address(offset) as u64, len as u64, protect);
        self.on_open(done, offset).is_some()
    }

    /// Takes a range out of the application's view: its next access faults.
    pub(super) fn withdraw(&self, offset: usize, len: usize) {
        // SAFETY: the range is ours, and a shared view of a file: the file keeps what is in it.
        let done = unsafe { madvise(self.reserved.at(offset, len), len, Advice::LinuxDontNeed) };
        self.done(done.map_err(io::Error::from), offset);
    }

    /// Gives the memory of a range back, which nobody sees.
    pub(super) fn forget(&self, offset: usize, len: usize) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.done(fallocate(&self.file, flags, offset as u64, len as u64).map_err(io::Error::from), offset);
    }

    /// Has whoever waits in a range try again.
    pub(super) fn wake(&self, offset: usize, len: usize) {
        self.done(self.faults.wake(self.address(offset) as u64, len as u64), offset);
    }

    /// Faults that have come.
    pub(super) fn faults(&self, into: &mut Vec<Fault>) {
        if let Some(start) = self.done(self.faults.read(into), 0) {
            let offset = usize::try_from(start).ok().and_then(|start| self.offset(start));
            self.lost(offset.unwrap_or_default(), "it was moved");
        }
    }

    /// Readable when a fault has come.
    pub(super) fn fault_fd(&self) -> BorrowedFd<'_> {
        self.faults.as_fd()
    }

    pub(super) fn is_user_mode_only(&self) -> bool {
        self.faults.is_user_mode_only
    }

    /// None: the range has been closed meanwhile.
    fn on_open<T>(&self, result: io::Result<T>, offset: usize) -> Option<T> {
        match result {
            Err(why) if why.raw_os_error() == Some(libc::ENOENT) => None,
            done => Some(self.done(done, offset)),
        }
    }

    /// The kernel was asked for what it can do, on ranges that are ours: that it does not is a broken invariant.
    fn done<T>(&self, result: io::Result<T>, offset: usize) -> T {
        result.unwrap_or_else(|why| self.lost(offset, &format!("the kernel refuses a change of it ({why})")))
    }

    /// What the application sees cannot be taken away from it any more: the process ends before it reads what does not count.
    fn lost(&self, offset: usize, why: &str) -> ! {
        // Nobody may listen.
        let _ = writeln!(
            io::stderr(),
            "rackmem: {} at {:#x}, mapped, is not under the rack's control any more: {why}. Programs must not move or unmap it (`mremap`, `munmap`).",
            super::addr_at(offset),
            self.address(offset)
        );
        std::process::abort();
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        // Nobody has a range open: whoever has one has a share of what owns this.
        // SAFETY: the range came from `mmap` with this length, and nobody borrows from `self` any more.
        let _ = unsafe { munmap(self.engine.as_ptr().cast(), self.reserved.len) };
    }
}

/// Bytes of a page of the machine.
pub const PAGE: usize = 4096;
