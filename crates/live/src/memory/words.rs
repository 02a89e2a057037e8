//! Big arrays of words out of zeroed pages, and copies between them.
//!
//! What must always hold: an array costs physical memory only where it has been written, and its first word
//! is aligned to a page, so that no block of up to 4 KiB lies on more cache lines or pages than it has to.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use transport::Contents;
use zerocopy::FromZeros;

/// Words in a page of the machine.
const PAGE_WORDS: usize = 4096 / 8;

/// Zeroed words. An allocator that knows zeroed pages hands them out untouched; it aligns them to 16 bytes
/// only (asking for more makes the standard library write the zeroes itself), hence the words skipped in
/// front.
pub(super) struct Words {
    /// To the last word that is used.
    all: Vec<AtomicU64>,
    first: usize,
}

impl Words {
    /// `len` words of zeroes.
    ///
    /// # Panics
    /// If the address space has no space for them.
    pub(super) fn zeroed(len: usize) -> Self {
        let mut all = <[AtomicU64]>::new_box_zeroed_with_elems(len + PAGE_WORDS)
            .unwrap_or_else(|_| panic!("no room for {len} words: give the nodes less memory"))
            .into_vec();
        let first = all.as_ptr().align_offset(PAGE_WORDS * 8);
        assert!(first < PAGE_WORDS, "the standard library aligns pointers at run time");
        #[cfg(target_os = "linux")]
        super::huge_pages::advise(&all);
        all.truncate(first + len);
        Self { all, first }
    }

    /// The words.
    #[inline]
    pub(super) fn get(&self) -> &[AtomicU64] {
        &self.all[self.first..]
    }

    /// The words and the unused ones in front of them: the hit path's index starts at [`Words::first`], which
    /// saves it a subslice.
    #[inline]
    pub(super) fn with_margin(&self) -> &[AtomicU64] {
        &self.all
    }

    /// Where in [`Words::with_margin`] the words start.
    #[inline]
    pub(super) fn first(&self) -> usize {
        self.first
    }
}

/// Copies words. The compiler does not merge atomic accesses into vectors, but eight independent moves a turn
/// keep the machine's store port busy, and that is within a tenth of what `memcpy` reaches on a 4 KiB block.
pub(super) fn copy(from: &[AtomicU64], to: &[AtomicU64]) {
    assert_eq!(from.len(), to.len(), "both are blocks of one rack");
    let ((from8, from_rest), (to8, to_rest)) = (from.as_chunks::<8>(), to.as_chunks::<8>());
    for (from, to) in from8.iter().zip(to8) {
        for (from, to) in from.iter().zip(to) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
    for (from, to) in from_rest.iter().zip(to_rest) {
        to.store(from.load(Relaxed), Relaxed);
    }
}

/// Copies whatever a block's contents are.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn copy_contents(from: Contents<'_>, to: &[AtomicU64]) {
    assert_eq!(from.bytes(), to.len() * 8, "both are blocks of one rack");
    match from {
        Contents::None | Contents::Zeroes(_) => clear(to),
        Contents::Shared(from) => copy(from, to),
        Contents::Own(from) => from.iter().zip(to).for_each(|(from, to)| to.store(*from, Relaxed)),
    }
}

/// Sets words to zero.
pub(super) fn clear(words: &[AtomicU64]) {
    for word in words {
        word.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_start_on_a_page_and_are_zero() {
        let words = Words::zeroed(3000);
        assert_eq!(words.get().len(), 3000);
        assert!(words.get().as_ptr().addr().is_multiple_of(4096));
        assert!(words.get().iter().all(|word| word.load(Relaxed) == 0));
        assert!(std::ptr::eq(&words.with_margin()[words.first()], &words.get()[0]));
    }

    #[test]
    fn a_copy_takes_every_word_whatever_the_length() {
        for len in [0, 1, 7, 8, 9, 64, 515] {
            let from: Vec<AtomicU64> = (1..=len).map(AtomicU64::new).collect();
            let to: Vec<AtomicU64> = (0..len).map(|_| AtomicU64::new(0)).collect();
            copy(&from, &to);
            assert!(from.iter().zip(&to).all(|(a, b)| a.load(Relaxed) == b.load(Relaxed)), "{len} words");
        }
    }
}
