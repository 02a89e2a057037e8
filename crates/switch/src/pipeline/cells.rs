//! The memory of a register array. Cells lie side by side in words, each in the smallest power of two of bits
//! that holds it, so that the array takes exactly the memory that the model says it takes.

use alloc::vec;
use alloc::vec::Vec;

const WORD_BITS: usize = u64::BITS as usize;

/// The cells of one array, all 0 at first.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    words: Vec<u64>,
    entries: usize,
    /// Base-2 logarithm of the bits that a cell takes, 3 to 6.
    shift: u32,
    /// The bits that a cell has.
    mask: u64,
}

/// Bits that a cell takes in memory.
pub(super) fn bits_taken(bits: u32) -> u32 {
    bits.next_power_of_two().max(8)
}

impl Cells {
    pub(super) fn new(bits: u32, entries: usize) -> Self {
        let shift = bits_taken(bits).trailing_zeros();
        let words = (entries << shift).div_ceil(WORD_BITS);
        Self { words: vec![0; words], entries, shift, mask: super::verify::mask(bits) }
    }

    /// Replaces a cell by what `change` makes of it, if there is such a cell.
    #[inline(always)]
    pub(super) fn update(&mut self, index: usize, change: impl FnOnce(u64) -> u64) {
        if index >= self.entries {
            return;
        }
        let bit = index << self.shift;
        let Some(word) = self.words.get_mut(bit / WORD_BITS) else { return };
        let at = bit % WORD_BITS;
        let old = *word >> at & self.mask;
        let new = change(old) & self.mask;
        // Most passes only look: leave the cache line clean.
        if new != old {
            *word = *word & !(self.mask << at) | new << at;
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<u64> {
        let bit = index.checked_shl(self.shift)?;
        (index < self.entries).then(|| self.words[bit / WORD_BITS] >> (bit % WORD_BITS) & self.mask)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_width_keep_apart_and_lose_what_does_not_fit() {
        for bits in 1..=64 {
            let mut cells = Cells::new(bits, 21);
            for index in 0..23 {
                cells.update(index, |old| {
                    assert_eq!(old, 0);
                    u64::MAX - index as u64
                });
            }
            let mask = u64::MAX >> (64 - bits);
            for index in 0..21 {
                assert_eq!(cells.get(index), Some((u64::MAX - index as u64) & mask), "{bits} bits, cell {index}");
            }
            assert_eq!(cells.get(21), None);
            assert_eq!(cells.get(usize::MAX), None);
        }
    }
}
