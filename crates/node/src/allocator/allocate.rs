//! Allocation, and the home's word that fresh blocks are live.

use wire::{Discipline, GlobalAddr, NodeId};

use super::held_chunks::Start;
use super::node_side::Allocator;
use super::range::BlockRange;

/// What [`Allocator::alloc`] came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome {
    /// Allocated.
    Done {
        /// Where.
        addr: GlobalAddr,
        /// Blocks of the allocation that were not live before. The home must mark them before the address is
        /// used; then they are told to [`Allocator::marked`]. Without them, the block is live already, and the
        /// bytes are whatever earlier objects left there.
        fresh: Option<BlockRange>,
    },
    /// No capacity. Ask that home for a chunk of at least so many bytes for this discipline, pass it to
    /// [`Allocator::add_chunk`], and try again.
    NeedChunk {
        /// Room that the allocation needs.
        bytes: u64,
    },
    /// No home could ever hold it: it is longer than [`Allocator::most`].
    TooBig,
}

impl Allocator {
    /// Allocates `len` bytes in the memory of `home`. Up to a block they lie inside one block, beyond they
    /// start at one; they are aligned to 16 bytes at least. An allocation of 0 bytes gets the smallest size.
    #[inline]
    pub fn alloc(&mut self, len: u64, home: NodeId, discipline: Discipline) -> Outcome {
        let blocks = len.div_ceil(self.geometry.block.bytes()).max(1);
        if blocks > self.most_blocks {
            return Outcome::TooBig;
        }
        let need = Outcome::NeedChunk { bytes: blocks << self.geometry.block.shift() };
        let Some(space) = self.space(home, discipline) else { return need };
        match self.slabs.class_of(len) {
            Some(class) => self.alloc_object(space, class),
            None => self.alloc_blocks(space, blocks),
        }
        .unwrap_or(need)
    }

    /// An object of a slab with capacity; or the first one of a new slab.
    #[inline]
    fn alloc_object(&mut self, space: usize, class: usize) -> Option<Outcome> {
        let outcome = match self.slabs.take(&mut self.spaces[space].partial, class) {
            Some(addr) => Outcome::Done { addr, fresh: None },
            None => {
                let fresh = self.take_blocks(space, 1)?;
                let slab = self.slabs.open(fresh.first.addr(), class);
                self.chunks.set_start(fresh.first, Start::Slab(slab));
                Outcome::Done { addr: fresh.first.addr(), fresh: Some(fresh) }
            }
        };
        self.usage.live_objects += 1;
        self.usage.live_bytes += self.slabs.size_of(class);
        Some(outcome)
    }

    fn alloc_blocks(&mut self, space: usize, blocks: u64) -> Option<Outcome> {
        let fresh = self.take_blocks(space, blocks)?;
        let count = u32::try_from(blocks).expect("at most Start::MAX blocks are allocated together");
        self.chunks.set_start(fresh.first, Start::Blocks(count));
        self.usage.live_objects += 1;
        self.usage.live_bytes += fresh.bytes(self.geometry.block);
        Some(Outcome::Done { addr: fresh.first.addr(), fresh: Some(fresh) })
    }

    fn take_blocks(&mut self, space: usize, blocks: u64) -> Option<BlockRange> {
        let Self { geometry, chunks, spaces, usage, .. } = self;
        let space = &mut spaces[space];
        let start = space.free.take(blocks)?;
        chunks.occupy(space.home, start..start + blocks, &mut space.idle);
        usage.live_blocks += blocks << geometry.block.shift();
        Some(BlockRange::from_numbers(space.home, start..start + blocks, geometry.block))
    }

    /// The home has marked the fresh blocks of an allocation live. Until this is called no other allocation
    /// shares them: while the mark is on its way, another thread's allocation in the same block would be
    /// refused by the home as unallocated.
    ///
    /// If the home refuses to mark them, free the allocation instead.
    pub fn marked(&mut self, fresh: BlockRange) {
        if let Some((space, Start::Slab(slab))) = self.chunks.find(fresh.first.addr()) {
            self.slabs.mark(&mut self.spaces[space].partial, slab);
        }
    }
}
