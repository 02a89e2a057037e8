//! The chunks that a node was granted, and what starts at each of their blocks.
//!
//! One table for all homes, keyed by address, so that `free` finds what it is about from the address alone.
//! Each block has one word, and only the first block of an allocation says anything: an allocation of a
//! thousand blocks is written down, and forgotten, in one step.

use alloc::vec::Vec;
use core::ops::Range;

use sorted::{Map, Set};
use wire::{BlockTag, GlobalAddr, NodeId};

use super::geometry::Geometry;

/// What starts at a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Start {
    /// Nothing: the block is free, or inside something that starts before it.
    Nothing,
    /// This slab, of one block.
    Slab(u32),
    /// An allocation of this many blocks.
    Blocks(u32),
    /// As many blocks that were freed, and not reclaimed yet.
    Quarantined(u32),
}

impl Start {
    /// The largest number that fits beside the kind. A rack's largest allocation follows from it.
    pub(super) const MAX: u32 = (1 << Self::KIND_SHIFT) - 1;
    const KIND_SHIFT: u32 = 30;

    /// A start in one word: kind in the top two bits, number below.
    fn pack(self) -> u32 {
        let (kind, number) = match self {
            Self::Nothing => (0, 0),
            Self::Slab(index) => (1, index),
            Self::Blocks(blocks) => (2, blocks),
            Self::Quarantined(blocks) => (3, blocks),
        };
        assert!(number <= Self::MAX, "{self:?} does not fit its word");
        kind << Self::KIND_SHIFT | number
    }

    fn unpack(word: u32) -> Self {
        let number = word & Self::MAX;
        match word >> Self::KIND_SHIFT {
            0 => Self::Nothing,
            1 => Self::Slab(number),
            2 => Self::Blocks(number),
            _ => Self::Quarantined(number),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct HeldChunk {
    /// Which home and discipline it is for: an index into the allocator's spaces.
    pub(super) space: usize,
    /// The blocks that were granted: all of the chunk but what its home never hands out.
    pub(super) blocks: Range<u64>,
    /// How many of them are not free.
    pub(super) busy: u64,
    /// What starts at each block of the chunk. Zeroed memory, which systems back when it is first touched.
    starts: Vec<u32>,
}

impl HeldChunk {
    /// Whatever starts in the chunk, by block number.
    pub(super) fn starts(&self, geometry: Geometry) -> impl Iterator<Item = (u64, Start)> {
        let number_of = move |number: &u64| (*number, self.start(geometry, *number));
        self.blocks
            .clone()
            .map(move |number| number_of(&number))
            .filter(|(_, start)| *start != Start::Nothing)
    }

    #[inline]
    fn start(&self, geometry: Geometry, number: u64) -> Start {
        Start::unpack(self.starts[geometry.index_in_chunk(number)])
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct HeldChunks {
    geometry: Geometry,
    /// By the address of the chunk, in chunks.
    chunks: Map<u64, HeldChunk>,
}

impl HeldChunks {
    pub(super) const fn new(geometry: Geometry) -> Self {
        Self { geometry, chunks: Map::new() }
    }

    #[inline]
    const fn key(&self, home: NodeId, chunk: u64) -> u64 {
        GlobalAddr::new(home, 0).bits() >> self.geometry.chunk.shift() | chunk
    }

    fn chunk_mut(&mut self, home: NodeId, chunk: u64) -> &mut HeldChunk {
        let key = self.key(home, chunk);
        self.chunks.get_mut(&key).expect("blocks of a space are in chunks that are held")
    }

    pub(super) fn holds(&self, home: NodeId, chunk: u64) -> bool {
        self.chunks.contains_key(&self.key(home, chunk))
    }

    pub(super) fn insert(&mut self, home: NodeId, chunk: u64, space: usize, blocks: Range<u64>) {
        let len = self.geometry.index_in_chunk(blocks.end - 1) + 1;
        let held = HeldChunk { space, blocks, busy: 0, starts: alloc::vec![0; len] };
        self.chunks.insert(self.key(home, chunk), held);
    }

    pub(super) fn remove(&mut self, home: NodeId, chunk: u64) -> Range<u64> {
        let key = self.key(home, chunk);
        self.chunks.remove(&key).expect("only a chunk that is held is removed").blocks
    }

    /// What starts at the block of `addr`, and in which space.
    #[inline]
    pub(super) fn find(&self, addr: GlobalAddr) -> Option<(usize, Start)> {
        let chunk = self.chunks.get(&(addr.bits() >> self.geometry.chunk.shift()))?;
        let number = self.geometry.block_of(addr);
        chunk.blocks.contains(&number).then(|| (chunk.space, chunk.start(self.geometry, number)))
    }

    /// Writes down what starts at a block that is held.
    pub(super) fn set_start(&mut self, tag: BlockTag, start: Start) {
        let number = self.geometry.block_of(tag.addr());
        let index = self.geometry.index_in_chunk(number);
        self.chunk_mut(tag.home(), self.geometry.chunk_of(number)).starts[index] = start.pack();
    }

    /// Blocks are free no longer. `idle` has the chunks of their space that are free as a whole.
    pub(super) fn occupy(&mut self, home: NodeId, numbers: Range<u64>, idle: &mut Set<u64>) {
        for (chunk, piece) in self.geometry.pieces(numbers) {
            let held = self.chunk_mut(home, chunk);
            if held.busy == 0 {
                idle.remove(&chunk);
            }
            held.busy += piece.end - piece.start;
        }
    }

    /// Blocks are free again.
    pub(super) fn vacate(&mut self, home: NodeId, numbers: Range<u64>, idle: &mut Set<u64>) {
        for (chunk, piece) in self.geometry.pieces(numbers) {
            let held = self.chunk_mut(home, chunk);
            held.busy -= piece.end - piece.start;
            if held.busy == 0 {
                idle.insert(chunk);
            }
        }
    }

    /// The chunks of one space, by number.
    pub(super) fn of_space(&self, space: usize) -> impl Iterator<Item = (u64, &HeldChunk)> {
        let numbered = self.chunks.values().map(|held| (self.geometry.chunk_of(held.blocks.start), held));
        numbered.filter(move |(_, held)| held.space == space)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starts_at_a_block_survives_its_word() {
        for number in [0, 1, Start::MAX] {
            for start in [Start::Slab(number), Start::Blocks(number), Start::Quarantined(number)] {
                assert_eq!(Start::unpack(start.pack()), start);
            }
        }
        assert_eq!(Start::Nothing.pack(), 0, "a fresh chunk is zeroes");
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn a_number_that_does_not_fit_is_a_bug_and_not_another_kind() {
        Start::Slab(Start::MAX + 1).pack();
    }
}
