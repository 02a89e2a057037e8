//! The contents of many blocks: the memory of a home, or the lines of a cache.
//!
//! A run keeps bytes, or only the number of the last write ([`Contents`]). What must always hold: the number of a
//! block's last write is kept in both cases, so that what protocols do never depends on it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use node::{Access, Window};
use sim::coherence::Contents;
use wire::BlockSize;

use super::paged::Paged;

/// A block's words; none while it is all zeroes.
type Words = Option<Box<[AtomicU64]>>;

/// A block's contents on their way from one place to another.
#[derive(Debug, Default)]
pub struct Value {
    /// How many writes the block has seen.
    pub stamp: u32,
    words: Words,
}

impl Clone for Value {
    fn clone(&self) -> Self {
        Self { stamp: self.stamp, words: duplicate(&self.words) }
    }
}

/// Blocks by number.
#[derive(Debug)]
pub struct Blocks {
    contents: Contents,
    block: BlockSize,
    stamps: Paged<u32>,
    /// Empty if only stamps are kept.
    words: Vec<Words>,
    /// What applications see of a block that has no words.
    zeroes: Box<[AtomicU64]>,
}

impl Blocks {
    /// Blocks that are all zeroes.
    pub fn new(contents: Contents, block: BlockSize) -> Self {
        Self { contents, block, stamps: Paged::default(), words: Vec::new(), zeroes: zeroes(block) }
    }

    /// The number of writes that this copy has seen.
    pub fn stamp(&self, index: usize) -> u32 {
        self.stamps.get(index)
    }

    /// A copy of a block.
    pub fn copy(&self, index: usize) -> Value {
        Value { stamp: self.stamps.get(index), words: self.words.get(index).and_then(duplicate) }
    }

    /// A block's contents, which are not needed here any more.
    pub fn take(&mut self, index: usize) -> Value {
        Value { stamp: self.stamps.get(index), words: self.words.get_mut(index).and_then(Option::take) }
    }

    /// Replaces a block's contents.
    pub fn put(&mut self, index: usize, value: Value) {
        *self.stamps.entry(index) = value.stamp;
        if self.contents == Contents::Bytes {
            if index >= self.words.len() {
                self.words.resize_with(index + 1, || None);
            }
            self.words[index] = value.words;
        }
    }

    /// Runs an application's closure on a part of a block. A write counts.
    pub fn touch(
        &mut self,
        index: usize,
        at: usize,
        len: usize,
        access: Access,
        with: &mut dyn FnMut(&Window<'_>),
    ) {
        let writes = access == Access::Modified;
        if writes {
            *self.stamps.entry(index) += 1;
        }
        if self.contents == Contents::Bytes && writes && index >= self.words.len() {
            self.words.resize_with(index + 1, || None);
        }
        match self.words.get_mut(index) {
            Some(words) if writes || words.is_some() => {
                let words = words.get_or_insert_with(|| zeroes(self.block));
                with(&Window::new(words, at, len));
            }
            _ => {
                with(&Window::new(&self.zeroes, at, len));
                if writes {
                    // Where no bytes are kept, the next one sees zeroes again.
                    self.zeroes[at / 8..(at + len).div_ceil(8)]
                        .iter()
                        .for_each(|word| word.store(0, Relaxed));
                }
            }
        }
    }
}

fn duplicate(words: &Words) -> Words {
    words.as_ref().map(|words| words.iter().map(|word| AtomicU64::new(word.load(Relaxed))).collect())
}

fn zeroes(block: BlockSize) -> Box<[AtomicU64]> {
    (0..block.words()).map(|_| AtomicU64::new(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> BlockSize {
        BlockSize::new(512).expect("a power of two")
    }

    fn word(blocks: &mut Blocks, index: usize) -> u64 {
        let mut seen = 0;
        blocks.touch(index, 8, 8, Access::Shared, &mut |window| seen = window.word(0));
        seen
    }

    #[test]
    fn bytes_travel_with_a_blocks_contents() {
        let mut here = Blocks::new(Contents::Bytes, block());
        let mut there = Blocks::new(Contents::Bytes, block());
        here.touch(5, 8, 8, Access::Modified, &mut |window| window.set_word(0, 77));
        there.put(1, here.copy(5));
        assert_eq!((word(&mut there, 1), there.stamp(1)), (77, 1));
        assert_eq!(word(&mut here, 5), 77, "the original stays");
    }

    #[test]
    fn without_bytes_every_closure_sees_zeroes_and_writes_are_counted() {
        let mut blocks = Blocks::new(Contents::Stamps, block());
        for _ in 0..3 {
            blocks.touch(5, 8, 8, Access::Modified, &mut |window| {
                assert_eq!(window.word(0), 0);
                window.set_word(0, 77);
            });
        }
        assert_eq!((word(&mut blocks, 5), blocks.stamp(5)), (0, 3));
    }
}
