//! The node's half of the allocator: its state, and what can be asked about it.
//!
//! The calls that change it stand in files of their own: [`Allocator::alloc`], [`Allocator::free`],
//! [`Allocator::add_chunk`] and what follows each of them.
//!
//! # Cost of the bookkeeping
//! - 4 B for each block of a chunk that is held (0.1 % of the memory with 4 KiB blocks).
//! - A slab: 40 B, and from 65 objects on one bit for each (and one in 64). Together with its block's 4 B, a
//!   full 4 KiB block costs 0.7 B for each object of 64 B and 0.3 B for each of 16 B; a full 64 B block costs
//!   11 B for each of 16 B.
//! - Beyond that nothing for a live object, nor for an allocation of whole blocks.
//! - A free run of blocks: two entries of 16 B in ordered trees.

use alloc::vec::Vec;

use sorted::{Map, Set};
use wire::addr::OFFSET_BITS;
use wire::{BlockSize, Discipline, NodeId};

use super::extents::Extents;
use super::geometry::{ChunkSize, Geometry};
use super::held_chunks::{HeldChunks, Start};
use super::slabs::{Partial, Slabs};

/// What an allocator holds, in bytes but for the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Usage {
    /// Live allocations.
    pub live_objects: u64,
    /// Bytes that they occupy: their sizes, rounded up to their class or to blocks. What [`Allocator::free`] will say for each
    /// of them, summed up.
    pub live_bytes: u64,
    /// In blocks that hold at least one live allocation.
    pub live_blocks: u64,
    /// In blocks that were freed and not reclaimed yet.
    pub quarantined: u64,
    /// In chunks granted by homes, all of the above and free ones.
    pub reserved: u64,
}

/// The chunks of one home for one discipline, and what is free in them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Space {
    pub(super) home: NodeId,
    /// Runs of free blocks; they may go across chunks.
    pub(super) free: Extents,
    /// Chunks that are free as a whole.
    pub(super) idle: Set<u64>,
    /// Slabs with capacity.
    pub(super) partial: Partial,
}

/// The allocator of one node: cuts the chunks that homes granted it into allocations.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Allocator {
    pub(super) geometry: Geometry,
    /// Blocks in the largest memory of the rack.
    pub(super) memory_blocks: u64,
    /// Most blocks that one allocation can have.
    pub(super) most_blocks: u64,
    pub(super) slabs: Slabs,
    pub(super) chunks: HeldChunks,
    pub(super) spaces: Vec<Space>,
    /// Home and discipline to the index of their space.
    pub(super) space_of: Map<(NodeId, u8), usize>,
    pub(super) usage: Usage,
}

impl Allocator {
    /// An allocator without chunks, in a rack whose nodes have `memory` bytes each (if they differ: the
    /// largest memory).
    ///
    /// # Panics
    /// If a chunk is smaller than a block, or the memory larger than an address can express (48 bits).
    pub fn new(memory: u64, block: BlockSize, chunk: ChunkSize) -> Self {
        assert!(memory <= 1 << OFFSET_BITS, "a node's memory has at most 2^48 bytes, not {memory}");
        let geometry = Geometry::new(block, chunk);
        let memory_blocks = memory >> block.shift();
        Self {
            geometry,
            memory_blocks,
            // A home keeps its first block to itself.
            most_blocks: memory_blocks.saturating_sub(1).min(u64::from(Start::MAX)),
            slabs: Slabs::new(block),
            chunks: HeldChunks::new(geometry),
            spaces: Vec::new(),
            space_of: Map::new(),
            usage: Usage::default(),
        }
    }

    /// Bytes of the largest allocation that a home with nothing else in it could hold.
    pub const fn most(&self) -> u64 {
        self.most_blocks << self.geometry.block.shift()
    }

    /// What the allocator holds.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    #[inline]
    pub(super) fn space(&self, home: NodeId, discipline: Discipline) -> Option<usize> {
        self.space_of.get(&(home, discipline as u8)).copied()
    }
}
