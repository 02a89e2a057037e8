//! Runs of neighbouring blocks: what the two halves of the allocator and the packets between them talk about.

use core::ops::Range;

use wire::addr::MAX_OFFSET;
use wire::{BlockSize, BlockTag, GlobalAddr, NodeId};

/// Neighbouring blocks in the memory of one home.
///
/// The fields are plain, so that a range can come from a packet; whoever receives one checks it
/// ([`ChunkTable`](super::ChunkTable) and [`Allocator`](super::Allocator) do).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockRange {
    /// The first of them.
    pub first: BlockTag,
    /// How many.
    pub blocks: u64,
}

impl BlockRange {
    /// The blocks that `bytes` bytes from the start of `first` fall into.
    pub const fn of_bytes(first: BlockTag, bytes: u64, block: BlockSize) -> Self {
        Self { first, blocks: bytes.div_ceil(block.bytes()) }
    }

    /// Bytes in the range; `u64::MAX` if that many do not exist.
    pub const fn bytes(self, block: BlockSize) -> u64 {
        self.blocks.saturating_mul(block.bytes())
    }

    /// The node whose memory this is.
    pub const fn home(self) -> NodeId {
        self.first.home()
    }

    /// The tags of the blocks, in ascending order; none if this is not a range of whole blocks of one home.
    pub fn tags(self, block: BlockSize) -> impl Iterator<Item = BlockTag> {
        let home = self.home();
        self.numbers(block).unwrap_or(0..0).map(move |number| tag_of(home, number, block))
    }

    /// The blocks by number, counted from the start of the home's memory. `None` if the range is empty, does
    /// not start at a block, or leaves the home's 48 bits.
    pub(super) fn numbers(self, block: BlockSize) -> Option<Range<u64>> {
        if block.tag(self.first.addr()) != self.first || self.blocks == 0 {
            return None;
        }
        let start = self.first.addr().offset() >> block.shift();
        let end = start.checked_add(self.blocks)?;
        (end <= (MAX_OFFSET >> block.shift()) + 1).then_some(start..end)
    }

    pub(super) fn from_numbers(home: NodeId, numbers: Range<u64>, block: BlockSize) -> Self {
        Self { first: tag_of(home, numbers.start, block), blocks: numbers.end - numbers.start }
    }
}

fn tag_of(home: NodeId, number: u64, block: BlockSize) -> BlockTag {
    block.tag(GlobalAddr::new(home, number << block.shift()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const BLOCK: BlockSize = BlockSize::DEFAULT;

    #[test]
    fn a_range_names_its_blocks_by_tag() {
        let range = BlockRange::of_bytes(tag_of(NodeId(3), 5, BLOCK), 4097, BLOCK);
        assert_eq!((range.home(), range.blocks, range.bytes(BLOCK)), (NodeId(3), 2, 8192));
        let tags: Vec<_> = range.tags(BLOCK).map(|tag| tag.addr().offset()).collect();
        assert_eq!(tags, [5 << 12, 6 << 12]);
        assert_eq!(BlockRange::from_numbers(NodeId(3), 5..7, BLOCK), range);
    }

    #[test]
    fn a_range_from_a_hostile_packet_names_no_block() {
        let first = tag_of(NodeId(1), 1, BLOCK);
        let inside = BlockTag::from_bits(first.bits() + 64);
        let last = tag_of(NodeId(1), (1 << 36) - 1, BLOCK);
        for bad in [
            BlockRange { first, blocks: 0 },
            BlockRange { first, blocks: u64::MAX },
            BlockRange { first: inside, blocks: 1 },
            BlockRange { first: first.lock_entry(), blocks: 1 },
            BlockRange { first: last, blocks: 2 },
        ] {
            assert_eq!(bad.numbers(BLOCK), None, "{bad:?}");
            assert_eq!(bad.tags(BLOCK).count(), 0, "{bad:?}");
        }
        assert!(BlockRange { first: last, blocks: 1 }.numbers(BLOCK).is_some());
    }
}
