//! Giving allocations back, and blocks that are free again after their quarantine.

use core::fmt;

use wire::{GlobalAddr, Refusal};

use super::held_chunks::Start;
use super::node_side::Allocator;
use super::range::BlockRange;

/// An allocation is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Freed {
    /// Bytes that it occupied: its length, rounded up to its class or to blocks.
    pub size: u64,
    /// Blocks that hold no live allocation any more. They are in quarantine: the home must end, no
    /// node may cache them any more, and then they go to [`Allocator::reclaim`].
    pub empty: Option<BlockRange>,
}

/// No live allocation of this node's allocator starts at this address. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAnAllocation;

/// These blocks are not what one [`Allocator::free`] left in quarantine. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotQuarantined;

impl Allocator {
    /// Gives back the allocation that starts at `addr`.
    ///
    /// # Errors
    /// If none does: it was freed already, starts elsewhere, or was never made here.
    #[inline]
    pub fn free(&mut self, addr: GlobalAddr) -> Result<Freed, NotAnAllocation> {
        let (space, start) = self.chunks.find(addr).ok_or(NotAnAllocation)?;
        let offset = self.geometry.block.offset_in_block(addr);
        let (size, blocks) = match start {
            Start::Slab(slab) => {
                let partial = &mut self.spaces[space].partial;
                let given = self.slabs.give(partial, slab, offset).ok_or(NotAnAllocation)?;
                (given.size, given.empty.then_some(1))
            }
            Start::Blocks(blocks) if offset == 0 => {
                (u64::from(blocks) << self.geometry.block.shift(), Some(blocks))
            }
            Start::Blocks(_) | Start::Quarantined(_) | Start::Nothing => return Err(NotAnAllocation),
        };
        self.usage.live_objects -= 1;
        self.usage.live_bytes -= size;
        Ok(Freed { size, empty: blocks.map(|blocks| self.quarantine(addr, blocks)) })
    }

    fn quarantine(&mut self, addr: GlobalAddr, blocks: u32) -> BlockRange {
        let range = BlockRange { first: self.geometry.block.tag(addr), blocks: u64::from(blocks) };
        self.chunks.set_start(range.first, Start::Quarantined(blocks));
        let bytes = range.bytes(self.geometry.block);
        self.usage.live_blocks -= bytes;
        self.usage.quarantined += bytes;
        range
    }

    /// Ends the quarantine of the blocks that one [`Allocator::free`] emptied: they may be allocated again.
    ///
    /// # Errors
    /// If they are not exactly that, or were reclaimed already.
    pub fn reclaim(&mut self, range: BlockRange) -> Result<(), NotQuarantined> {
        let Self { geometry, chunks, spaces, usage, .. } = self;
        let numbers = range.numbers(geometry.block).ok_or(NotQuarantined)?;
        let Some((space, Start::Quarantined(blocks))) = chunks.find(range.first.addr()) else {
            return Err(NotQuarantined);
        };
        if u64::from(blocks) != range.blocks {
            return Err(NotQuarantined);
        }
        let space = &mut spaces[space];
        chunks.set_start(range.first, Start::Nothing);
        chunks.vacate(space.home, numbers.clone(), &mut space.idle);
        space.free.give(numbers);
        usage.quarantined -= range.bytes(geometry.block);
        Ok(())
    }
}

impl fmt::Display for NotAnAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no live allocation starts at this address")
    }
}

impl core::error::Error for NotAnAllocation {}

impl From<NotAnAllocation> for Refusal {
    fn from(_: NotAnAllocation) -> Self {
        Self::NotAnAllocation
    }
}
