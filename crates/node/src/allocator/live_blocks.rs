//! Which blocks of one chunk are live: one bit a block.
//!
//! The chunk's discipline says the rest, so a block costs its home one bit (64 KiB for 32 MiB of 64 B blocks,
//! 1 KiB for as many 4 KiB blocks), and nothing before the first block of the chunk is marked.

use alloc::vec::Vec;
use core::ops::Range;

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct LiveBlocks {
    /// Grows to the highest block that was ever marked live.
    words: Vec<u64>,
    count: u64,
}

impl LiveBlocks {
    /// How many are live.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Whether this block of the chunk, by its index there, is live.
    pub(super) fn contains(&self, block: usize) -> bool {
        self.words.get(block / 64).is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    /// Makes these blocks of the chunk live, or ends them.
    pub(super) fn set(&mut self, blocks: Range<usize>, live: bool) {
        let words = blocks.end.div_ceil(64);
        if live && self.words.len() < words {
            self.words.resize(words, 0);
        }
        let end = blocks.end.min(self.words.len() * 64);
        let mut block = blocks.start;
        while block < end {
            let (index, low) = (block / 64, block % 64);
            let bits = (end - block).min(64 - low);
            let mask = u64::MAX >> (64 - bits) << low;
            let word = &mut self.words[index];
            self.count -= u64::from((*word & mask).count_ones());
            if live {
                *word |= mask;
                self.count += u64::from(mask.count_ones());
            } else {
                *word &= !mask;
            }
            block += bits;
        }
    }

    /// Makes those blocks live, too, that are in another set: none is in both.
    pub(super) fn join(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
        self.count += other.count;
    }

    /// Counts anew, for the invariants.
    pub(super) fn recount(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Bytes that the bits take.
    #[cfg(test)]
    fn metadata_bytes(&self) -> usize {
        self.words.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_blocks_that_were_set_are_live() {
        for range in [0..1, 3..9, 60..70, 0..64, 63..65, 64..128, 5..300] {
            let mut live = LiveBlocks::default();
            live.set(range.clone(), true);
            live.set(range.clone(), true);
            assert_eq!(live.count(), range.len() as u64, "{range:?}, marked twice");
            assert!((0..400).all(|block| live.contains(block) == range.contains(&block)), "{range:?}");
            live.set(range.start..range.start + 1, false);
            assert!(!live.contains(range.start) && live.count() == range.len() as u64 - 1, "{range:?}");
            live.set(0..1000, false);
            assert!(live.count() == 0 && live.recount() == 0, "{range:?}");
        }
    }

    #[test]
    fn a_live_block_costs_one_bit_and_a_dead_chunk_nothing() {
        let mut live = LiveBlocks::default();
        live.set(0..524_288, false);
        assert_eq!(live.metadata_bytes(), 0, "nothing was ever live");
        live.set(0..524_288, true);
        assert_eq!(live.metadata_bytes(), 64 << 10, "32 MiB of 64 B blocks");
    }
}
