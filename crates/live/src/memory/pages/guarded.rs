//! A range of the rack's memory that a lock guards, at the addresses at which it would be mapped.
//!
//! Its bytes travel with the lock. What a program sees here are pages of its own process: whoever is inside the lock has them filled, and
//! may use them; nobody may when the lock is left.
//!
//! What must always hold: a range is nobody else's, mapped or guarded, for as long as this is there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use wire::{BlockSize, GlobalAddr};

use super::views::Reserved;
use super::{Addresses, BadRange, NODE_SHIFT, PAGE, Refused, Right, are_pages, last_words, offset_of};

/// Pages that show what a lock guards. At first nobody may access them.
pub struct GuardedRange {
    reserved: Arc<Reserved>,
    offset: usize,
    len: usize,
    /// A [`Right`].
    right: AtomicU8,
}

impl Addresses {
    /// Whether what locks guard can be mapped where blocks are of this size: it begins with a page then.
    ///
    /// # Errors
    /// If not.
    pub fn can_guard(block: BlockSize) -> Result<(), Refused> {
        are_pages(block)
    }
}

impl GuardedRange {
    /// Whole pages that this lock guards.
    ///
    /// # Errors
    /// If they cannot be mapped.
    ///
    /// # Panics
    /// If they are no whole pages.
    pub fn open(
        addresses: &Addresses,
        (addr, len): (GlobalAddr, usize),
        lock: GlobalAddr,
    ) -> Result<Self, BadRange> {
        let is_whole = |bytes: u64| bytes.is_multiple_of(PAGE as u64);
        assert!(is_whole(addr.offset()) && is_whole(len as u64) && len > 0, "{addr}+{len} is no pages");
        let reserved = Arc::clone(&addresses.reserved);
        let place = |addr| offset_of(addr, reserved.len() >> NODE_SHIFT).ok_or(BadRange::TooFar);
        let offset = place(addr)?;
        place(addr.checked_add(len as u64 - 1).ok_or(BadRange::TooFar)?)?;
        if !reserved.claim(offset, len) {
            return Err(BadRange::Overlaps);
        }
        last_words::prepare(reserved.range());
        let start = reserved.start() + offset;
        last_words::guard(&(start..start + len), lock);
        Ok(Self { reserved, offset, len, right: AtomicU8::new(Right::None as u8) })
    }

    /// Where the pages are in this process.
    pub fn as_ptr(&self) -> *mut u8 {
        self.reserved.pointer(self.offset, self.len)
    }

    /// How many bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Never.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// From now on they may be read, or also written.
    ///
    /// # Errors
    /// If the system does not let them: a process has a bounded number of ranges with different rights (`vm.max_map_count`).
    pub fn allow(&self, writes: bool) -> io::Result<()> {
        self.permit(if writes { Right::Write } else { Right::Read })
    }

    /// From now on an access ends the process.
    ///
    /// # Panics
    /// If the system does not let it: the process must not go on.
    pub fn forbid(&self) {
        self.permit(Right::None).expect("pages lose the rights that they have got");
    }

    fn permit(&self, right: Right) -> io::Result<()> {
        if self.right.load(Relaxed) != right as u8 {
            self.reserved.permit(self.offset, self.len, right)?;
            self.right.store(right as u8, Relaxed);
        }
        Ok(())
    }

    /// Copies bytes to the pages, all of them.
    ///
    /// # Panics
    /// If they must not be written, or are not so many.
    pub fn fill(&self, bytes: &[u8]) {
        assert_eq!((self.right.load(Relaxed), bytes.len()), (Right::Write as u8, self.len));
        self.reserved.fill(self.offset, bytes);
    }

    /// Copies all bytes of the pages.
    ///
    /// # Panics
    /// If they must not be read, or there is no room for so many.
    pub fn copy_to(&self, bytes: &mut [u8]) {
        assert!(self.right.load(Relaxed) != Right::None as u8 && bytes.len() == self.len, "{}", bytes.len());
        self.reserved.copy_to(self.offset, bytes);
    }
}

impl Drop for GuardedRange {
    fn drop(&mut self) {
        self.forbid();
        self.reserved.give_back(self.offset, self.len);
        last_words::unguard(self.reserved.start() + self.offset);
        self.reserved.disclaim(self.offset);
    }
}
