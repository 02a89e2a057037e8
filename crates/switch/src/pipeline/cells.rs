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

    /// A cell, if there is such a one.
    #[inline(always)]
    pub(super) fn cell(&mut self, index: usize) -> Option<Cell<'_>> {
        if self.shift == WORD_SHIFT {
            let word = self.words.get_mut(index)?;
            return Some(Cell { value: *word, word, at: 0, mask: self.mask });
        }
        if index >= self.entries {
            return None;
        }
        let bit = index << self.shift;
        let word = self.words.get_mut(bit / WORD_BITS)?;
        let at = bit % WORD_BITS;
        Some(Cell { value: *word >> at & self.mask, word, at, mask: self.mask })
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

/// One cell, read.
pub(super) struct Cell<'a> {
    word: &'a mut u64,
    at: usize,
    mask: u64,
    value: u64,
}

impl Cell<'_> {
    #[inline(always)]
    pub(super) const fn get(&self) -> u64 {
        self.value
    }

    /// Writes what fits.
    #[inline(always)]
    pub(super) const fn set(&mut self, value: u64) {
        let value = value & self.mask;
        // Most passes only look: leave the cache line clean.
        if value != self.value {
            *self.word = *self.word & !(self.mask << self.at) | value << self.at;
        }
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
                if let Some(mut cell) = cells.cell(index) {
                    assert_eq!(cell.get(), 0);
                    cell.set(u64::MAX - index as u64);
                }
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
