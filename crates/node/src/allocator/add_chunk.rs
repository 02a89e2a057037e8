//! Chunks come from homes, and go back when nothing is in them.

use wire::{Discipline, NodeId};

use super::extents::Extents;
use super::node_side::{Allocator, Space};
use super::range::BlockRange;
use super::slabs::Partial;

/// Why a chunk was not added. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkRefused {
    /// It is no range of blocks that a home may grant: it does not start at a block, has none, contains the
    /// first block of the home's memory, or leaves that memory.
    NotGrantable,
    /// Some of it is here already.
    AlreadyHeld,
}

impl Allocator {
    /// Adds a run of chunks that their home granted for one discipline.
    ///
    /// # Errors
    /// If it cannot be what a home grants, or is here already (a repeated answer).
    pub fn add_chunk(&mut self, range: BlockRange, discipline: Discipline) -> Result<(), ChunkRefused> {
        let numbers = range.numbers(self.geometry.block).ok_or(ChunkRefused::NotGrantable)?;
        // Bounded, or a wrong answer could fill this node with bookkeeping for memory that nobody has.
        if numbers.start == 0 || numbers.end > self.memory_blocks {
            return Err(ChunkRefused::NotGrantable);
        }
        let home = range.home();
        if self.geometry.pieces(numbers.clone()).any(|(chunk, _)| self.chunks.holds(home, chunk)) {
            return Err(ChunkRefused::AlreadyHeld);
        }
        let index = self.space_or_new(home, discipline);
        let space = &mut self.spaces[index];
        for (chunk, piece) in self.geometry.pieces(numbers.clone()) {
            self.chunks.insert(home, chunk, index, piece);
            space.idle.insert(chunk);
        }
        space.free.give(numbers);
        self.usage.reserved += range.bytes(self.geometry.block);
        Ok(())
    }

    fn space_or_new(&mut self, home: NodeId, discipline: Discipline) -> usize {
        *self.space_of.entry((home, discipline as u8)).or_insert_with(|| {
            self.spaces.push(Space {
                home,
                free: Extents::default(),
                idle: Default::default(),
                partial: Partial::default(),
            });
            self.spaces.len() - 1
        })
    }

    /// Lets go of a chunk that is entirely free, to be given back to its home; `None` if there is none to
    /// spare. One free chunk is kept for each home and discipline, or a program that allocates and frees at a
    /// chunk's edge would ask for one and give it back for ever.
    pub fn surplus(&mut self) -> Option<BlockRange> {
        let Self { geometry, chunks, spaces, usage, .. } = self;
        let space = spaces.iter_mut().find(|space| space.idle.len() > 1)?;
        // The highest: best fit fills low addresses first.
        let chunk = space.idle.pop_last()?;
        let blocks = chunks.remove(space.home, chunk);
        space.free.carve(blocks.clone());
        let range = BlockRange::from_numbers(space.home, blocks, geometry.block);
        usage.reserved -= range.bytes(geometry.block);
        Some(range)
    }
}
