//! Blocks and chunks: the geometry that both halves of the allocator, and all nodes of a rack, agree on.

use core::fmt;
use core::ops::Range;

use wire::{BlockSize, GlobalAddr};

/// The size of a chunk, which a home grants as a whole: a power of two from 64 B to 1 GiB. It is fixed per
/// rack, and at least the block size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct ChunkSize(u32);

impl ChunkSize {
    /// 32 MiB (Concordia, section 6).
    pub const DEFAULT: Self = Self(25);
    const MIN_SHIFT: u32 = BlockSize::MIN.shift();
    const MAX_SHIFT: u32 = 30;
    /// A memory should hold at least this many chunks, or the first few nodes to allocate would take it all:
    /// every node that allocates from a home holds at least one chunk a discipline.
    const PER_MEMORY: u64 = 64;

    /// The chunk size of `bytes` bytes, if that is a power of two from 64 B to 1 GiB.
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes.is_power_of_two() {
            let shift = bytes.trailing_zeros();
            if shift >= Self::MIN_SHIFT && shift <= Self::MAX_SHIFT {
                return Some(Self(shift));
            }
        }
        None
    }

    /// 32 MiB, or less where a node's memory is so small that it would hold fewer than 64 of them; never less
    /// than a block.
    pub fn for_memory(bytes: u64, block: BlockSize) -> Self {
        let fair = (bytes / Self::PER_MEMORY).checked_ilog2().map_or(0, |log| 1 << log);
        let bytes = fair.clamp(block.bytes(), Self::DEFAULT.bytes());
        Self::new(bytes).expect("a power of two between a block and 32 MiB is a chunk size")
    }

    /// Bytes in a chunk.
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }

    /// Base-2 logarithm of the bytes in a chunk.
    pub const fn shift(self) -> u32 {
        self.0
    }
}

impl Default for ChunkSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for ChunkSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..10 => write!(f, "{} B", self.bytes()),
            10..20 => write!(f, "{} KiB", self.bytes() >> 10),
            _ => write!(f, "{} MiB", self.bytes() >> 20),
        }
    }
}

/// Block size and chunk size together. Blocks and chunks are numbered from the start of a home's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Geometry {
    pub(super) block: BlockSize,
    pub(super) chunk: ChunkSize,
}

impl Geometry {
    pub(super) fn new(block: BlockSize, chunk: ChunkSize) -> Self {
        assert!(chunk.shift() >= block.shift(), "a chunk of {chunk} cannot hold a block of {block}");
        Self { block, chunk }
    }

    /// Base-2 logarithm of the blocks in a chunk.
    const fn chunk_shift(self) -> u32 {
        self.chunk.shift() - self.block.shift()
    }

    pub(super) const fn blocks_per_chunk(self) -> u64 {
        1 << self.chunk_shift()
    }

    /// The block that `addr` falls into.
    pub(super) const fn block_of(self, addr: GlobalAddr) -> u64 {
        addr.offset() >> self.block.shift()
    }

    /// The chunk that a block is in.
    pub(super) const fn chunk_of(self, number: u64) -> u64 {
        number >> self.chunk_shift()
    }

    /// Where in its chunk a block is.
    pub(super) const fn index_in_chunk(self, number: u64) -> usize {
        // A chunk has at most 2^24 blocks (1 GiB of 64 B).
        (number & (self.blocks_per_chunk() - 1)) as usize
    }

    /// All blocks of a chunk.
    pub(super) const fn blocks_of(self, chunk: u64) -> Range<u64> {
        chunk << self.chunk_shift()..(chunk + 1) << self.chunk_shift()
    }

    /// A run of blocks cut at the chunks' boundaries.
    pub(super) fn pieces(self, numbers: Range<u64>) -> impl Iterator<Item = (u64, Range<u64>)> {
        let chunks = if numbers.is_empty() {
            0..0
        } else {
            self.chunk_of(numbers.start)..self.chunk_of(numbers.end - 1) + 1
        };
        chunks.map(move |chunk| {
            let whole = self.blocks_of(chunk);
            (chunk, numbers.start.max(whole.start)..numbers.end.min(whole.end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn small_memories_get_small_chunks_and_no_chunk_is_smaller_than_a_block() {
        let of = |memory: u64, block| ChunkSize::for_memory(memory, block).bytes();
        assert_eq!(of(128 << 30, BlockSize::DEFAULT), 32 << 20);
        assert_eq!(of(2 << 30, BlockSize::DEFAULT), 32 << 20);
        assert_eq!(of(1 << 30, BlockSize::DEFAULT), 16 << 20);
        assert_eq!(of(100 << 20, BlockSize::DEFAULT), 1 << 20);
        assert_eq!(of(100 << 10, BlockSize::DEFAULT), 4096);
        assert_eq!(of(0, BlockSize::MAX), 1 << 20);
        assert_eq!(of(1 << 20, BlockSize::MIN), 16 << 10);
    }

    #[test]
    fn chunk_sizes_are_powers_of_two_from_64_bytes_to_1_gib() {
        for bad in [0, 1, 32, 65, 3 << 20, 2 << 30] {
            assert_eq!(ChunkSize::new(bad), None, "{bad}");
        }
        for good in [64, 4096, 32 << 20, 1 << 30] {
            assert_eq!(ChunkSize::new(good).unwrap().bytes(), good);
        }
    }

    #[test]
    fn a_run_is_cut_at_every_chunk_boundary_inside_it() {
        let geometry = Geometry::new(BlockSize::DEFAULT, ChunkSize::new(16 << 10).unwrap());
        let pieces: Vec<_> = geometry.pieces(3..9).collect();
        assert_eq!(pieces, [(0, 3..4), (1, 4..8), (2, 8..9)]);
        assert_eq!(geometry.pieces(4..8).collect::<Vec<_>>(), [(1, 4..8)]);
        assert_eq!(geometry.pieces(4..4).count(), 0);
    }

    #[test]
    #[should_panic(expected = "cannot hold a block")]
    fn a_chunk_smaller_than_a_block_is_refused() {
        Geometry::new(BlockSize::DEFAULT, ChunkSize::new(2048).unwrap());
    }
}
