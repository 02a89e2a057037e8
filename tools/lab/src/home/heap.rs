//! Allocations of a baseline: from the start of a home's memory to its end, nothing comes back.
//!
//! No figure measures allocation in the baselines, so it takes effect at once and sends nothing.

use wire::{BlockSize, GlobalAddr, NodeId};

/// One home's memory.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    home: NodeId,
    block: BlockSize,
    next: u64,
    end: u64,
}

impl Heap {
    /// `bytes` of memory, all of it free but for the first block, so that no allocation has the null address.
    pub const fn new(home: NodeId, block: BlockSize, bytes: u64) -> Self {
        Self { home, block, next: block.bytes(), end: block.bytes() + bytes }
    }

    /// The next whole blocks that hold `len` bytes, if there are enough left.
    pub fn alloc(&mut self, len: u64) -> Option<GlobalAddr> {
        let bytes = len.max(1).checked_next_multiple_of(self.block.bytes())?;
        let end = self.next.checked_add(bytes).filter(|end| *end <= self.end)?;
        let addr = GlobalAddr::new(self.home, self.next);
        self.next = end;
        Some(addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_whole_blocks_in_a_row_until_the_memory_is_used_up() {
        let mut heap = Heap::new(NodeId(2), BlockSize::new(512).unwrap(), 2048);
        let addrs = [heap.alloc(1), heap.alloc(513), heap.alloc(513), heap.alloc(512), heap.alloc(1)];
        let at = |offset| Some(GlobalAddr::new(NodeId(2), offset));
        assert_eq!(addrs, [at(512), at(1024), None, at(2048), None]);
        assert_eq!(heap.alloc(u64::MAX), None);
    }
}
