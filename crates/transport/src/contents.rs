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
        fn copy(words: impl Iterator<Item = u64>, to: &mut [u8]) {
            for (piece, word) in to.chunks_mut(8).zip(words) {
                match <&mut [u8; 8]>::try_from(&mut *piece) {
                    Ok(whole) => *whole = word.to_ne_bytes(),
                    Err(_) => piece.copy_from_slice(&word.to_ne_bytes()[..piece.len()]),
                }
            }
        }
        match self {
            Self::None | Self::Zeroes(_) => to.fill(0),
            Self::Shared(words) => copy(words[start / 8..].iter().map(|word| word.load(Relaxed)), to),
            Self::Own(words) => copy(words[start / 8..].iter().copied(), to),
        }
    }
}
