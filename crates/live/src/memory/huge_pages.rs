//! Asks the kernel to back a large array with huge pages.
//!
//! A cache of 64 MiB is 16,384 ordinary pages, ten times what a processor's translation buffers hold, so that
//! nearly every hit at random would walk the page tables. With 2 MiB pages it is 32. The kernel takes this as
//! advice: where it has none to give, nothing changes.
//!
//! Unsafe code: the advice is a system call on a range of addresses.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;

use rustix::mm::{Advice, madvise};

/// A huge page of x86-64 and of most others.
const HUGE: usize = 2 << 20;

/// Gives the advice for the whole huge pages inside `words`.
pub(super) fn advise(words: &[AtomicU64]) {
    let start = words.as_ptr() as usize;
    let first = start.next_multiple_of(HUGE);
    let Some(len) = (start + size_of_val(words)).checked_sub(first).map(|len| len / HUGE * HUGE) else {
        return;
    };
    if len == 0 {
        return;
    }
    let range = words[(first - start) / 8..].as_ptr().cast_mut().cast();
    // SAFETY: the range lies inside `words`, memory that is ours, and this advice changes none of its contents and
    // none of its protection; it only lets the kernel choose larger pages.
    let done = unsafe { madvise(range, len, Advice::LinuxHugepage) };
    // Advice that is not taken is no error: the kernel may have been built without huge pages.
    let _ = done;
}
