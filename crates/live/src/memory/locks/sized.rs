//! Regions of which only a part counts: how large it is, the third word says.
//!
//! What must always hold: whatever the word says, a part lies in its region, and has the word.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use transport::Contents;
use wire::{SIZED, region_bytes};

/// Words from the first one to that which says how many bytes count.
pub(super) const WORDS: usize = 3;

/// How many bytes count of a sized region of this length, which begins so: whole words.
pub(super) fn bytes(first: Contents<'_>, len: u32) -> u32 {
    let says = match first {
        Contents::Shared(words) => words.get(WORDS - 1).map_or(0, |word| word.load(Relaxed)),
        Contents::Own(words) => words.get(WORDS - 1).copied().unwrap_or(0),
        Contents::None | Contents::Zeroes(_) => 0,
    };
    let most = u64::from(region_bytes(len));
    let count = says.checked_next_multiple_of(8).unwrap_or(most).clamp((WORDS as u64 * 8).min(most), most);
    u32::try_from(count).expect("at most the region")
}

/// The same of a region of this length, sized or not, in these words.
pub fn counted(words: &[AtomicU64], len: u32) -> usize {
    if len & SIZED == 0 { region_bytes(len) as usize } else { bytes(Contents::Shared(words), len) as usize }
}

/// What counts of a region of this length.
pub(super) fn part(region: Contents<'_>, len: u32) -> Contents<'_> {
    if len & SIZED == 0 {
        return region;
    }
    let words = (bytes(region, len) as usize / 8).min(region.bytes() / 8);
    match region {
        Contents::Shared(all) => Contents::Shared(&all[..words]),
        Contents::Own(all) => Contents::Own(&all[..words]),
        Contents::None => Contents::None,
        Contents::Zeroes(_) => Contents::Zeroes(words * 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_what_the_third_word_says_within_the_region() {
        let len = SIZED | 64;
        for (says, counts) in [(24, 24), (25, 32), (64, 64), (65, 64), (0, 24), (u64::MAX, 64)] {
            let words = [7, 7, says, 7, 7, 7, 7, 7];
            assert_eq!(bytes(Contents::Own(&words), len), counts, "{says}");
            assert_eq!(part(Contents::Own(&words), len).bytes(), counts as usize);
            assert_eq!(part(Contents::Own(&words), 64).bytes(), 64, "it is not sized");
        }
        assert_eq!(part(Contents::Zeroes(64), len).bytes(), 24);
        assert_eq!(bytes(Contents::None, SIZED | 8), 8);
    }
}
