//! The bytes of a block on their way from or to somewhere.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What travels with a packet. Blocks consist of 64-bit words, whose bytes travel in the order of the machine's
/// memory.
#[derive(Clone, Copy, Debug)]
pub enum Contents<'a> {
    /// Nothing.
    None,
    /// So many bytes of zeroes: memory that was never written.
    Zeroes(usize),
    /// Words that other threads, or processes, may be changing. Whoever names them knows that they do not, or that
    /// it does not matter.
    Shared(&'a [AtomicU64]),
    /// Words that nobody else has.
    Own(&'a [u64]),
}

impl Contents<'_> {
    /// Length in bytes.
    pub const fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Zeroes(bytes) => *bytes,
            Self::Shared(words) => words.len() * 8,
            Self::Own(words) => words.len() * 8,
        }
    }

    /// Words that the caller keeps; none of them are [`Contents::None`].
    pub const fn own(words: &[u64]) -> Contents<'_> {
        if words.is_empty() { Contents::None } else { Contents::Own(words) }
    }

    /// A part of it, of `len` bytes from `start` on; both are multiples of 8.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn part(self, start: usize, len: usize) -> Self {
        let words = start / 8..(start + len) / 8;
        assert!(
            start.is_multiple_of(8) && len.is_multiple_of(8) && start + len <= self.bytes(),
            "{start}+{len} of {self:?}"
        );
        match self {
            Self::None => Self::None,
            Self::Zeroes(_) => Self::Zeroes(len),
            Self::Shared(all) => Self::Shared(&all[words]),
            Self::Own(all) => Self::Own(&all[words]),
        }
    }

    /// A copy of the words.
    pub fn to_words(&self) -> Vec<u64> {
        match self {
            Self::None => Vec::new(),
            Self::Zeroes(bytes) => vec![0; bytes / 8],
            Self::Shared(words) => words.iter().map(|word| word.load(Relaxed)).collect(),
            Self::Own(words) => words.to_vec(),
        }
    }

    /// Copies a part of the bytes, from `start`, a multiple of 8. A length that is no multiple of 8 takes a part of
    /// the last word.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn copy_to(&self, start: usize, to: &mut [u8]) {
        assert!(
            start.is_multiple_of(8) && start + to.len() <= self.bytes(),
            "{start}+{} of {self:?}",
            to.len()
        );
        // A loop for each variant, over whole words: blocks are copied here.
        fn copy(mut words: impl Iterator<Item = u64>, to: &mut [u8]) {
            let (whole, rest) = to.as_chunks_mut::<8>();
            for (piece, word) in whole.iter_mut().zip(words.by_ref()) {
                *piece = word.to_ne_bytes();
            }
            if !rest.is_empty()
                && let Some(word) = words.next()
            {
                rest.copy_from_slice(&word.to_ne_bytes()[..rest.len()]);
            }
        }
        match self {
            Self::None | Self::Zeroes(_) => to.fill(0),
            Self::Shared(words) => copy(words[start / 8..].iter().map(|word| word.load(Relaxed)), to),
            Self::Own(words) => copy(words[start / 8..].iter().copied(), to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Contents;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn any_part_is_copied_as_it_is_whoever_has_the_words() {
        let words: Vec<u64> =
            (1..=6).map(|word| word * 0x0101_0101_0101_0101 + 0x8070_6050_4030_2010).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let shared: Vec<AtomicU64> = words.iter().map(|&word| AtomicU64::new(word)).collect();
        for start in (0..=48).step_by(8) {
            for end in start..=48 {
                let mut copied = vec![0xee; end - start];
                Contents::Own(&words).copy_to(start, &mut copied);
                if end.is_multiple_of(8) {
                    for contents in [Contents::Own(&words), Contents::Shared(&shared)] {
                        let mut part = vec![0xee; end - start];
                        contents.part(start, end - start).copy_to(0, &mut part);
                        assert_eq!(part, copied);
                    }
                }
                assert_eq!(copied, bytes[start..end]);
                copied.fill(0xee);
                Contents::Shared(&shared).copy_to(start, &mut copied);
                assert_eq!(copied, bytes[start..end]);
                Contents::Zeroes(48).copy_to(start, &mut copied);
                assert!(copied.iter().all(|&byte| byte == 0));
            }
        }
    }
}
