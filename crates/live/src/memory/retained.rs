//! Copies of block contents that outlive their frames: answers that may have to be given again.
//!
//! What must always hold: a copy stays as it is, readable by any node's threads, until it is given back; and
//! buffers never move. Memory grows to the most copies that were kept at a time, and is not returned.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock, PoisonError};

use transport::Contents;
use wire::BlockSize;

use super::words::{Words, copy_contents};

/// Buffers in the first segment; each segment has twice as many as the one before it.
const FIRST_SEGMENT: u32 = 8;
const SEGMENTS: usize = 29;

/// A growing pool of block-sized buffers.
pub struct Retained {
    block: BlockSize,
    segments: [OnceLock<Words>; SEGMENTS],
    /// Uncontended: only the node's machines keep and give back, one at a time.
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    free: Vec<u32>,
    /// Whether each buffer made so far is in use.
    used: Vec<bool>,
}

impl Retained {
    /// No copies.
    pub fn new(block: BlockSize) -> Self {
        Self { block, segments: [const { OnceLock::new() }; SEGMENTS], pool: Mutex::default() }
    }

    /// How many copies are kept now.
    pub fn in_use(&self) -> usize {
        let pool = self.pool();
        pool.used.len() - pool.free.len()
    }

    /// Keeps a copy, and returns its number.
    pub(super) fn keep(&self, from: Contents<'_>) -> u32 {
        let number = {
            let mut pool = self.pool();
            let number = pool.free.pop().unwrap_or_else(|| {
                pool.used.push(false);
                u32::try_from(pool.used.len() - 1).expect("segments for fewer than 2^32 copies")
            });
            pool.used[number as usize] = true;
            number
        };
        let (segment, first) = self.locate(number);
        let words = self.segments[segment]
            .get_or_init(|| Words::zeroed((FIRST_SEGMENT as usize * self.block.words()) << segment));
        copy_contents(from, &words.get()[first..first + self.block.words()]);
        number
    }

    /// The words of a copy.
    pub(super) fn words(&self, number: u32) -> &[AtomicU64] {
        let (segment, first) = self.locate(number);
        let words = self.segments[segment].get().expect("the copy was made before it was named");
        &words.get()[first..first + self.block.words()]
    }

    /// Gives a copy back.
    pub(super) fn discard(&self, number: u32) {
        let mut pool = self.pool();
        assert!(std::mem::take(&mut pool.used[number as usize]), "copy {number} was given back before");
        pool.free.push(number);
    }

    /// Which segment a buffer is in, and where it starts there. Segments begin at buffers 0, 8, 24, 56, ...
    fn locate(&self, number: u32) -> (usize, usize) {
        let from_one = u64::from(number) + u64::from(FIRST_SEGMENT);
        let segment = from_one.ilog2() - FIRST_SEGMENT.ilog2();
        let first = from_one - (u64::from(FIRST_SEGMENT) << segment);
        (segment as usize, first as usize * self.block.words())
    }

    /// A panic elsewhere leaves the pool as it was: no operation on it stops half way.
    fn pool(&self) -> std::sync::MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    fn block_of(value: u64) -> Vec<AtomicU64> {
        (0..8).map(|_| AtomicU64::new(value)).collect()
    }

    #[test]
    fn copies_keep_their_contents_and_their_address_while_the_pool_grows() {
        let retained = Retained::new(BlockSize::MIN);
        let first = retained.keep(Contents::Shared(&block_of(0)));
        let at = retained.words(first).as_ptr();
        let numbers: Vec<u32> =
            (1..200).map(|value| retained.keep(Contents::Shared(&block_of(value)))).collect();
        for (value, number) in (1..).zip(&numbers) {
            assert!(retained.words(*number).iter().all(|word| word.load(Relaxed) == value));
        }
        assert_eq!(retained.words(first).as_ptr(), at);
        assert_eq!(retained.in_use(), 200);
    }

    #[test]
    fn buffers_given_back_are_used_again() {
        let retained = Retained::new(BlockSize::MIN);
        for round in 0..1000 {
            let number = retained.keep(Contents::Shared(&block_of(round)));
            assert!(number < 8, "round {round} grew the pool");
            retained.discard(number);
        }
        assert_eq!(retained.in_use(), 0);
    }

    #[test]
    #[should_panic(expected = "was given back before")]
    fn giving_a_copy_back_twice_is_a_bug() {
        let retained = Retained::new(BlockSize::MIN);
        let number = retained.keep(Contents::Shared(&block_of(1)));
        retained.discard(number);
        retained.discard(number);
    }
}
