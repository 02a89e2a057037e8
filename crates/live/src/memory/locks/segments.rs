//! Arrays of words that grow, and never move: what threads look at without a lock stays where it is.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use crate::memory::words::Words;

/// Segments after the first; each is twice as large as the one before.
const MORE: usize = 40;

/// Numbered words. The first segment has the size that was planned for; others come when that was too little.
pub(super) struct Segments {
    first: Words,
    step: usize,
    more: [OnceLock<Words>; MORE],
}

impl Segments {
    /// `first` words, and room for more, in segments that begin with `step` words: a power of two.
    pub(super) fn new(first: usize, step: usize) -> Self {
        assert!(step.is_power_of_two(), "{step}");
        Self { first: Words::zeroed(first), step, more: std::array::from_fn(|_| OnceLock::new()) }
    }

    /// Where the segments after the first begin: the number of their first words, and how many those are.
    pub(super) fn segment(&self, number: usize) -> (usize, usize) {
        match number {
            0 => (0, self.first.get().len()),
            _ => (self.first.get().len() + self.step * ((1 << (number - 1)) - 1), self.step << (number - 1)),
        }
    }

    /// The words `at` to `at + len`, which lie in one segment that is there.
    #[inline]
    pub(super) fn get(&self, at: usize, len: usize) -> &[AtomicU64] {
        match self.first.get().get(at..).and_then(|rest| rest.get(..len)) {
            Some(words) => words,
            None => self.get_more(at, len),
        }
    }

    /// The `number`th part of `N` words, of which segments have a whole number.
    #[inline]
    pub(super) fn part<const N: usize>(&self, number: usize) -> &[AtomicU64; N] {
        match self.first.get().as_chunks().0.get(number) {
            Some(part) => part,
            None => self.get_more(number * N, N).as_array().expect("it has so many words"),
        }
    }

    #[cold]
    fn get_more(&self, at: usize, len: usize) -> &[AtomicU64] {
        let number = ((at - self.first.get().len()) / self.step + 1).ilog2() as usize + 1;
        let (start, size) = self.segment(number);
        let words = self.more[number - 1].get_or_init(|| Words::zeroed(size));
        &words.get()[at - start..at - start + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn every_number_has_a_word_of_its_own() {
        let segments = Segments::new(24, 16);
        assert_eq!(
            [0, 1, 2, 3].map(|number| segments.segment(number)),
            [(0, 24), (24, 16), (40, 32), (72, 64)]
        );
        for at in 0..136 {
            segments.get(at, 1)[0].store(at as u64 + 1, Relaxed);
        }
        for at in 0..136 {
            assert_eq!(segments.get(at, 1)[0].load(Relaxed), at as u64 + 1);
        }
        for part in 0..17 {
            let words: &[AtomicU64; 8] = segments.part(part);
            assert_eq!(words[7].load(Relaxed), part as u64 * 8 + 8);
        }
        assert_eq!(segments.get(40, 32)[31].load(Relaxed), 72);
    }
}
