//! A range of the rack's memory that the application has mapped.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use wire::{BlockTag, GlobalAddr};

use super::Pages;

/// Why a range cannot be mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadRange {
    /// A part of it is mapped in this process already.
    Overlaps,
    /// It reaches further into its node's memory than can be mapped: 512 GiB.
    TooFar,
}

/// A range that is open in the application's view, until it is closed.
pub struct MappedRange {
    pages: Arc<Pages>,
    addr: GlobalAddr,
    offset: usize,
    len: usize,
}

impl MappedRange {
    /// Maps `len` bytes from the start of a block on. To be called under the lock of the node's actor: from now on the machines
    /// keep its blocks in pages.
    ///
    /// # Errors
    /// If the range cannot be mapped.
    ///
    /// # Panics
    /// If the range does not start with a block, or the kernel does not map what was reserved for it.
    pub fn open(pages: &Arc<Pages>, addr: GlobalAddr, len: usize) -> Result<Self, BadRange> {
        let first = pages.block.tag(addr);
        assert_eq!(first.addr(), addr, "a mapped range starts with a block");
        let blocks = (len as u64).div_ceil(pages.block.bytes());
        let len = (blocks << pages.block.shift()) as usize;
        let last = addr.checked_add(len as u64 - 1).ok_or(BadRange::TooFar)?;
        let offset = super::offset_of(addr, pages.memories).ok_or(BadRange::TooFar)?;
        super::offset_of(last, pages.memories).ok_or(BadRange::TooFar)?;
        let mut table = pages.table();
        if !pages.views.reserved().claim(offset, len) {
            return Err(BadRange::Overlaps);
        }
        pages.views.open(offset, len).unwrap_or_else(|why| panic!("the kernel does not map {addr}: {why}"));
        // Whoever had a page granted while the range was closed has not noticed.
        pages.forget_rights(offset, len);
        table.ranges.push((first, blocks));
        drop(table);
        Ok(Self { pages: Arc::clone(pages), addr, offset, len })
    }

    /// Where it begins in the rack.
    pub const fn addr(&self) -> GlobalAddr {
        self.addr
    }

    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        self.pages.views.seen(self.offset, self.len)
    }

    /// The pages that it is made of.
    pub const fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// Closes it. To be called under the lock of the node's actor; what the node has of it stays cached until it is evicted.
    pub(crate) fn close(&self) {
        let first = self.pages.block.tag(self.addr);
        self.pages.table().ranges.retain(|(range, _)| *range != first);
        self.pages.close(self.offset, self.len);
        self.pages.views.reserved().disclaim(self.offset);
    }

    /// Its blocks.
    pub fn blocks(&self) -> impl Iterator<Item = BlockTag> + use<> {
        self.blocks_of(self.addr, self.addr + self.len as u64)
    }

    /// The blocks that these bytes of it lie in, from one address to behind another one.
    pub fn blocks_of(&self, from: GlobalAddr, to: GlobalAddr) -> impl Iterator<Item = BlockTag> + use<> {
        let block = self.pages.block;
        let (first, end) = (block.tag(from).addr().offset(), to.offset());
        let home = from.home();
        (first..end).step_by(block.len()).map(move |at| block.tag(GlobalAddr::new(home, at)))
    }
}
