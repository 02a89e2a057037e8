//! Which objects of a slab are free: one bit an object, and the lowest free one found in constant time.
//!
//! Up to 64 objects the bits are one word in place. Beyond, a summary with one bit a word stands in front of
//! the words, so that even a slab of 65,536 objects (16 B in blocks of 1 MiB) is searched in 16 + 1 steps.

use alloc::boxed::Box;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum FreeBits {
    /// Up to 64 objects.
    Few(u64),
    /// The summary, then the bits.
    Many(Box<[u64]>),
}

impl FreeBits {
    /// All of `count` objects are free.
    pub(super) fn all(count: usize) -> Self {
        if count <= 64 {
            return Self::Few(ones(count));
        }
        let words = count.div_ceil(64);
        let summaries = words.div_ceil(64);
        let of_word = |index: usize| match index.checked_sub(summaries) {
            None => ones(words - index * 64),
            Some(word) => ones(count - word * 64),
        };
        Self::Many((0..summaries + words).map(of_word).collect())
    }

    /// Takes the lowest free object.
    pub(super) fn take(&mut self) -> Option<usize> {
        match self {
            Self::Few(bits) => take_lowest(bits),
            Self::Many(all) => {
                let (summary, words) = all.split_at_mut(summaries(all.len()));
                let index = summary.iter().position(|bits| *bits != 0)?;
                let word = index * 64 + summary[index].trailing_zeros() as usize;
                let bit = take_lowest(&mut words[word])?;
                if words[word] == 0 {
                    summary[index] &= !(1 << (word % 64));
                }
                Some(word * 64 + bit)
            }
        }
    }

    /// Gives an object back. False if it was free already: then nothing has changed.
    pub(super) fn give(&mut self, object: usize) -> bool {
        let bit = 1 << (object % 64);
        match self {
            Self::Few(bits) => {
                let taken = *bits & bit == 0;
                *bits |= bit;
                taken
            }
            Self::Many(all) => {
                let (summary, words) = all.split_at_mut(summaries(all.len()));
                let word = object / 64;
                let taken = words[word] & bit == 0;
                words[word] |= bit;
                summary[word / 64] |= 1 << (word % 64);
                taken
            }
        }
    }

    /// How many objects are free, for the invariants.
    pub(super) fn count(&self) -> usize {
        let words = match self {
            Self::Few(bits) => core::slice::from_ref(bits),
            Self::Many(all) => &all[summaries(all.len())..],
        };
        words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// A word with its lowest `count` bits set; all of them from 64 on.
fn ones(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// Words of summary among this many words: one for each 64 others.
fn summaries(all: usize) -> usize {
    all.div_ceil(65)
}

fn take_lowest(bits: &mut u64) -> Option<usize> {
    let lowest = bits.trailing_zeros() as usize;
    if *bits == 0 {
        return None;
    }
    *bits &= *bits - 1;
    Some(lowest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const COUNTS: [usize; 12] = [2, 4, 63, 64, 65, 128, 129, 4096, 4097, 8192, 8193, 65_536];

    #[test]
    fn each_object_is_taken_exactly_once_lowest_first() {
        for count in COUNTS {
            let mut free = FreeBits::all(count);
            assert_eq!(free.count(), count);
            let taken: Vec<_> = core::iter::from_fn(|| free.take()).collect();
            assert!(taken.iter().copied().eq(0..count), "{count}");
            assert_eq!(free.count(), 0, "{count}");
        }
    }

    #[test]
    fn an_object_that_is_given_back_is_found_again_and_only_once() {
        for count in COUNTS {
            let mut free = FreeBits::all(count);
            while free.take().is_some() {}
            for object in [count - 1, count / 2, 0] {
                assert!(free.give(object), "{object} of {count}");
                assert!(!free.give(object), "{object} of {count} is free already");
                assert_eq!(free.take(), Some(object), "of {count}");
                assert_eq!(free.take(), None, "of {count}");
            }
        }
    }
}
