//! The list of the regions, in front of them.
//!
//! ```text
//!   words 0, 1   the header of every lock (`header.rs`)
//!   word 2       bytes that count: of all this
//!   word 3       how many regions
//!   then         of each: the address of the memory that it was taken from, or 0; its bytes
//!   then         the regions, one behind the other, each in whole words
//! ```
//! What must always hold when a writer leaves: all regions lie in what counts, and what is behind a region's last byte in its last
//! word is 0.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::locked::header;

/// How many regions there may be.
pub(super) const MOST: usize = 64;
/// Words of each one's entry.
pub(super) const ENTRY: usize = 2;
/// Where the list begins.
pub(super) const LIST: usize = header::WORDS + 2;
const USED: usize = header::WORDS;
const COUNT: usize = header::WORDS + 1;

/// What follows the header where these are the regions.
pub(super) fn filled(regions: &[&[u8]]) -> Vec<u8> {
    let lens = || regions.iter().map(|region| region.len());
    let used = (LIST + ENTRY * regions.len()) * 8 + lens().map(|len| len.next_multiple_of(8)).sum::<usize>();
    let words = [used, regions.len()].into_iter().chain(lens().flat_map(|len| [0, len]));
    let mut bytes: Vec<u8> = words.flat_map(|word| (word as u64).to_ne_bytes()).collect();
    for region in regions {
        bytes.extend_from_slice(region);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes
}

/// The list, and how long everything is.
#[derive(Clone, Copy)]
pub(super) struct List<'a>(&'a [AtomicU64]);

impl<'a> List<'a> {
    /// The list in these words; None if that is none.
    pub(super) fn of(words: &'a [AtomicU64]) -> Option<Self> {
        let list = Self(words);
        let word = |at: usize| words.get(at).map(|word| word.load(Relaxed));
        let (used, count) = (word(USED)?, word(COUNT)?);
        if count > MOST as u64 || used > size_of_val(words) as u64 || used < (LIST as u64) * 8 {
            return None;
        }
        let entries = LIST as u64 + count * ENTRY as u64;
        let sum = (0..count as usize).try_fold(entries * 8, |sum, number| {
            let len = word(LIST + number * ENTRY + 1)?;
            sum.checked_add(len.checked_next_multiple_of(8)?)
        });
        (sum == Some(used)).then_some(list)
    }

    /// The list in words that are being changed, so that it is none for a moment.
    pub(super) const fn of_changing(words: &'a [AtomicU64]) -> Self {
        Self(words)
    }

    fn word(self, at: usize) -> usize {
        self.0[at].load(Relaxed) as usize
    }

    pub(super) fn count(self) -> usize {
        self.word(COUNT)
    }

    /// Bytes that count, from the first word on.
    pub(super) fn used(self) -> usize {
        self.word(USED)
    }

    /// Bytes of a region.
    pub(super) fn len(self, number: usize) -> usize {
        self.word(LIST + number * ENTRY + 1)
    }

    /// Where its memory was taken from, or 0.
    pub(super) fn taken_from(self, number: usize) -> u64 {
        self.0[LIST + number * ENTRY].load(Relaxed)
    }

    /// Where its bytes are, from the first word on.
    pub(super) fn place(self, number: usize) -> Range<usize> {
        let before: usize = (0..number).map(|before| self.len(before).next_multiple_of(8)).sum();
        let start = (LIST + self.count() * ENTRY) * 8 + before;
        start..start + self.len(number)
    }

    pub(super) fn set_count(self, count: usize) {
        self.0[COUNT].store(count as u64, Relaxed);
    }

    pub(super) fn set_used(self, bytes: usize) {
        self.0[USED].store(bytes as u64, Relaxed);
    }

    pub(super) fn set_entry(self, number: usize, taken_from: u64, len: usize) {
        self.0[LIST + number * ENTRY].store(taken_from, Relaxed);
        self.0[LIST + number * ENTRY + 1].store(len as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(used: u64, entries: &[(u64, u64)], more: usize) -> Vec<AtomicU64> {
        let list = entries.iter().flat_map(|(from, len)| [*from, *len]);
        let all = [0, 0, used, entries.len() as u64].into_iter().chain(list);
        all.chain(std::iter::repeat_n(0, more)).map(AtomicU64::new).collect()
    }

    #[test]
    fn regions_lie_behind_each_other_in_whole_words() {
        let words = words(8 * 8 + 16 + 24, &[(0, 9), (64, 24)], 8);
        let list = List::of(&words).unwrap();
        assert_eq!((list.count(), list.used()), (2, 104));
        assert_eq!([list.place(0), list.place(1)], [64..73, 80..104]);
        assert_eq!([list.taken_from(0), list.taken_from(1)], [0, 64]);
    }

    #[test]
    fn what_a_lock_begins_with_is_a_list_of_its_regions() {
        for regions in [&[][..], &[&b"three"[..], &[], &[7; 16]]] {
            let bytes = [&[0; header::BYTES][..], &filled(regions)].concat();
            let words = bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
            let words: Vec<_> = words.map(AtomicU64::new).collect();
            let list = List::of(&words).unwrap();
            assert_eq!((list.count(), list.used()), (regions.len(), bytes.len()));
            let places = (0..list.count()).map(|number| &bytes[list.place(number)]);
            assert!(places.eq(regions.iter().copied()));
        }
    }

    #[test]
    fn what_is_no_list_is_none() {
        for (used, entries) in [
            (0, &[][..]),
            (40, &[]),
            (48, &[(0, 1)]),
            (64, &[(0, 8)]),
            (56, &[(0, u64::MAX)]),
            (1 << 40, &[(0, (1 << 40) - 48)]),
        ] {
            assert!(List::of(&words(used, entries, 4)).is_none(), "{used} {entries:?}");
        }
        let many = words(32, &[], 0);
        many[COUNT].store(65, Relaxed);
        assert!(List::of(&many).is_none());
        assert!(List::of(&many[..3]).is_none());
    }
}
