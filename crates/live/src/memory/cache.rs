//! The set-associative cache: buckets of eight frames, as a structure of arrays.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use node::FrameId;
use wire::{BlockSize, BlockTag};

use super::frame_word::{FrameMeta, generation, is_readable};
use super::hints::{Hint, Hints};
use super::lru::Clock;
use super::words::Words;

/// Frames in a bucket: their tags fill one cache line.
pub(super) const WAYS: usize = 8;

/// The tags of one bucket. The tag of a frame that is not readable means nothing.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Tags(pub(super) [AtomicU64; WAYS]);

/// One node's cache of blocks. Application threads hit in it by the methods here; misses and revocations
/// reach it through [`super::StoreOf`].
pub struct Cache {
    pub(super) block: BlockSize,
    /// The block size, as the hit path wants it.
    pub(super) shift: u32,
    pub(super) tag_mask: u64,
    pub(super) word_mask: u64,
    pub(super) data: Words,
    pub(super) meta: Box<[FrameMeta]>,
    pub(super) tags: Box<[Tags]>,
    pub(super) clock: Clock,
}

impl Cache {
    /// Bytes kept per frame besides the block itself: its tag, and 16 bytes of state.
    pub const METADATA_BYTES_PER_FRAME: usize = size_of::<Tags>() / WAYS + size_of::<FrameMeta>();

    /// An empty cache of as many whole buckets of eight blocks as fit into `bytes`, but at least one.
    ///
    /// # Panics
    /// If that would be 2^32 frames or more.
    pub fn new(block: BlockSize, bytes: u64) -> Self {
        let buckets = (bytes / (WAYS as u64 * block.bytes())).max(1);
        let frames = u32::try_from(buckets * WAYS as u64).unwrap_or_else(|_| {
            panic!("a cache of {bytes} B has too many frames of {block}: choose larger blocks")
        });
        Self {
            block,
            shift: block.shift(),
            tag_mask: !(block.bytes() - 1),
            word_mask: block.words() as u64 - 1,
            data: Words::zeroed(frames as usize * block.words()),
            meta: (0..frames).map(|_| FrameMeta::default()).collect(),
            tags: (0..buckets).map(|_| Tags::default()).collect(),
            clock: Clock::new(frames),
        }
    }

    /// The size of the blocks.
    pub fn block_size(&self) -> BlockSize {
        self.block
    }

    /// How many blocks the cache can hold. Its frames are numbered from 0.
    pub fn frames(&self) -> u32 {
        // Checked when the cache was made.
        self.meta.len() as u32
    }

    /// The words of a frame.
    #[inline]
    pub(super) fn words(&self, frame: FrameId) -> &[AtomicU64] {
        let at = self.base(frame);
        &self.data.with_margin()[at..at + self.block.words()]
    }

    #[inline]
    pub(super) fn meta(&self, frame: FrameId) -> &FrameMeta {
        &self.meta[frame.0 as usize]
    }

    /// Where the frame's first word is in the data, margins included.
    #[inline]
    fn base(&self, frame: FrameId) -> usize {
        self.data.first() + ((frame.0 as usize) << (self.shift - 3))
    }

    /// The frame's place for a tag.
    pub(super) fn tag(&self, frame: FrameId) -> &AtomicU64 {
        let frame = frame.0 as usize;
        &self.tags[frame / WAYS].0[frame % WAYS]
    }

    /// The frames in which a block may be.
    pub(super) fn bucket(&self, tag: u64) -> usize {
        // A multiplicative hash of the block's number (the home's bits are in its upper half and reach the
        // upper bits of the product), and a multiplication in place of a division to bring it into range.
        let hash = (tag >> self.shift).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(hash) * self.tags.len() as u128) >> 64) as usize
    }

    /// The frames of a bucket.
    pub(super) fn frames_of(&self, bucket: usize) -> impl Iterator<Item = FrameId> + use<> {
        let first = (bucket * WAYS) as u32;
        (first..first + WAYS as u32).map(FrameId)
    }

    /// Looks a block up. What is found may be out of date at once: the caller checks the frame's generation
    /// after whatever it does there. A block that agents move to another frame meanwhile may be missed; that
    /// miss finds it again under the lock of the node's actor.
    pub(super) fn probe(&self, tag: u64) -> Option<Hint> {
        let bucket = self.bucket(tag);
        let tags = &self.tags[bucket].0;
        // All eight are compared before the first is followed: where in its bucket a block is cannot be
        // predicted.
        let mut matching =
            (0..WAYS).fold(0_u32, |ways, way| ways | u32::from(tags[way].load(Relaxed) == tag) << way);
        while matching != 0 {
            let way = matching.trailing_zeros() as usize;
            matching &= matching - 1;
            let frame = FrameId((bucket * WAYS + way) as u32);
            let word = self.meta(frame).word.load(SeqCst);
            // Which block the word is about can only be told by a tag that was loaded after it; and
            // acquiring, so that the check of the generation fails if that tag was newer than the word.
            if is_readable(word) && tags[way].load(SeqCst) == tag {
                return Some(Hint { frame, generation: generation(word), base: self.base(frame) });
            }
        }
        None
    }

    /// Looks a block up, remembers where it is, and notes that it is in use.
    pub(super) fn probe_and_hint(&self, hints: &mut Hints, row: usize, tag: u64) -> Option<Hint> {
        let found = self.probe(tag)?;
        hints.set(row, self.clock.key(tag), found);
        self.clock.touch(self.meta(found.frame));
        Some(found)
    }

    /// The 64-bit form of a data block's tag.
    pub(super) fn tag_bits(&self, tag: BlockTag) -> u64 {
        assert_eq!(tag.bits() & !self.tag_mask, 0, "{tag:?} names no data block of {}", self.block);
        tag.bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{GlobalAddr, NodeId};

    #[test]
    fn a_frame_costs_24_bytes_of_metadata() {
        assert_eq!(Cache::METADATA_BYTES_PER_FRAME, 24);
        let cache = Cache::new(BlockSize::DEFAULT, 64 << 20);
        let metadata = size_of_val(&*cache.tags) + size_of_val(&*cache.meta);
        assert_eq!(metadata, 24 * 16384);
        assert!(metadata * 100 < 64 << 20, "less than 1 % of the cache");
    }

    #[test]
    fn the_number_of_buckets_is_whatever_fits_but_at_least_one() {
        for (bytes, frames) in [(0, 8), (4096, 8), (8 * 4096, 8), (24 * 4096 - 1, 16), (100 * 4096, 96)] {
            assert_eq!(Cache::new(BlockSize::DEFAULT, bytes).frames(), frames, "{bytes} bytes");
        }
    }

    #[test]
    fn frames_do_not_overlap() {
        let cache = Cache::new(BlockSize::MIN, 16 * 64);
        for frame in 0..16 {
            cache.words(FrameId(frame)).iter().for_each(|w| w.store(u64::from(frame), Relaxed));
        }
        for frame in 0..16 {
            assert!(cache.words(FrameId(frame)).iter().all(|w| w.load(Relaxed) == u64::from(frame)));
        }
    }

    /// How many of `blocks` blocks do not fit a cache with twice as many frames.
    fn turned_away(block: impl Fn(u64) -> GlobalAddr) -> usize {
        let cache = Cache::new(BlockSize::DEFAULT, 4096 * 4096);
        let mut taken = vec![0; cache.tags.len()];
        for i in 0..2048 {
            taken[cache.bucket(block(i).bits())] += 1;
        }
        taken.iter().map(|n: &usize| n.saturating_sub(WAYS)).sum()
    }

    #[test]
    fn blocks_in_a_row_strided_blocks_and_equal_offsets_on_many_homes_spread_over_the_buckets() {
        // Blocks thrown at random would overflow their buckets by about 42 of 2048.
        let at = |home: u64, block: u64| GlobalAddr::new(NodeId(u16::try_from(home).unwrap()), block << 12);
        for stride in [1, 2, 8, 64, 512, 1000, 4096] {
            assert!(turned_away(|i| at(3, i * stride)) <= 84, "stride {stride}");
        }
        for homes in [2, 8, 16, 64] {
            assert!(turned_away(|i| at(i % homes, 77 + i / homes)) <= 84, "{homes} homes");
        }
    }
}
