//! The memory of a register array. Cells lie side by side in words, each in the smallest power of two of bits
//! that holds it, so that the array takes exactly the memory that the model says it takes.

use alloc::vec;
use alloc::vec::Vec;

const WORD_BITS: usize = u64::BITS as usize;
const WORD_SHIFT: u32 = u64::BITS.trailing_zeros();

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

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Does something to a cell, if there is such a one: what fits is written, and what else comes of it is returned.
    #[inline(always)]
    pub(super) fn change(&mut self, index: usize, work: impl FnOnce(u64) -> (u64, u64)) -> Option<u64> {
        let mask = self.mask;
        // Most passes only look: leave the cache line clean.
        if self.shift == WORD_SHIFT {
            let word = self.words.get_mut(index)?;
            let (new, output) = work(*word);
            if new & mask != *word {
                *word = new & mask;
            }
            return Some(output);
        }
        if index >= self.entries {
            return None;
        }
        let bit = index << self.shift;
        let (word, at) = (self.words.get_mut(bit / WORD_BITS)?, bit % WORD_BITS);
        let old = *word >> at & mask;
        let (new, output) = work(old);
        if new & mask != old {
            *word = *word & !(mask << at) | (new & mask) << at;
        }
        Some(output)
    }

    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<u64> {
        if self.shift == WORD_SHIFT {
            return self.words.get(index).copied();
        }
        if index >= self.entries {
            return None;
        }
        let bit = index << self.shift;
        self.words.get(bit / WORD_BITS).map(|word| *word >> (bit % WORD_BITS) & self.mask)
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
                let was = cells.change(index, |cell| (u64::MAX - index as u64, cell));
                assert_eq!(was, (index < 21).then_some(0));
            }
            let mask = u64::MAX >> (64 - bits);
            for index in 0..21 {
                assert_eq!(
                    cells.get(index),
                    Some((u64::MAX - index as u64) & mask),
                    "{bits} bits, cell {index}"
                );
            }
            assert_eq!(cells.get(21), None);
            assert_eq!(cells.get(usize::MAX), None);
        }
    }
}
