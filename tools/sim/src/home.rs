//! The memory that nodes are home of, for blocks and for the regions that locks carry alike: bytes, or only the numbers of
//! the last writes.
//!
//! What must always hold: memory that was never written reads as zeroes and costs nothing. A block that is written is no
//! region any more, and the other way round: so what comes late to memory that belongs to another discipline by now is seen.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use wire::BlockSize;

/// What is kept of a block's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Contents {
    /// All of it.
    #[default]
    Bytes,
    /// The number of the last write. Applications see zeroes. For large runs that measure.
    Stamps,
}

/// A block's words; none while it is all zeroes.
pub(crate) type Words = Option<Box<[AtomicU64]>>;

/// A block of zeroes.
pub(crate) fn zeroes(block: BlockSize) -> Box<[AtomicU64]> {
    (0..block.words()).map(|_| AtomicU64::new(0)).collect()
}

/// Makes `to` the same as `from`.
pub(crate) fn copy(from: Option<&[AtomicU64]>, to: &mut Words) {
    match (from, &*to) {
        (None, _) => *to = None,
        (Some(from), Some(to)) => {
            for (from, to) in from.iter().zip(to) {
                to.store(from.load(Relaxed), Relaxed);
            }
        }
        (Some(from), None) => {
            *to = Some(from.iter().map(|word| AtomicU64::new(word.load(Relaxed))).collect())
        }
    }
}

/// Blocks of a page of [`Home`].
const PAGE: usize = 1024;

/// The number of a block's last write, once a region in it was written: no write of a block has it.
const OF_A_REGION: u32 = u32::MAX;

/// The memory that a node is home of.
pub(crate) struct Home {
    block: BlockSize,
    stamps: Vec<Option<Box<[u32; PAGE]>>>,
    /// Empty without bytes.
    words: Vec<Option<Box<[Words]>>>,
    /// By offset: the number of the last write to regions that locks carry.
    regions: BTreeMap<u64, u64>,
}

impl Home {
    pub(crate) fn new(block: BlockSize, bytes: u64, contents: Contents) -> Self {
        let pages = usize::try_from(bytes >> block.shift()).expect("it fits in memory").div_ceil(PAGE);
        let of_words = if contents == Contents::Bytes { pages } else { 0 };
        Self {
            block,
            stamps: (0..pages).map(|_| None).collect(),
            words: (0..of_words).map(|_| None).collect(),
            regions: BTreeMap::new(),
        }
    }

    fn locate(&self, number: u64) -> (usize, usize) {
        (usize::try_from(number).expect("a block's number") / PAGE, number as usize % PAGE)
    }

    pub(crate) fn stamp(&self, number: u64) -> u32 {
        let (page, index) = self.locate(number);
        self.stamps[page].as_ref().map_or(0, |stamps| stamps[index])
    }

    pub(crate) fn words(&self, number: u64) -> Option<&[AtomicU64]> {
        let (page, index) = self.locate(number);
        self.words.get(page)?.as_ref()?[index].as_deref()
    }

    pub(crate) fn write(&mut self, number: u64, stamp: u32, words: Option<&[AtomicU64]>) {
        self.forget_regions(number, 1);
        self.write_block(number, stamp, words);
    }

    fn write_block(&mut self, number: u64, stamp: u32, words: Option<&[AtomicU64]>) {
        let (page, index) = self.locate(number);
        if stamp != 0 || self.stamps[page].is_some() {
            self.stamps[page].get_or_insert_with(|| Box::new([0; PAGE]))[index] = stamp;
        }
        let Some(slot) = self.words.get_mut(page) else { return };
        if words.is_some() || slot.is_some() {
            let page = slot.get_or_insert_with(|| (0..PAGE).map(|_| None).collect());
            copy(words, &mut page[index]);
        }
    }

    /// Sets whole blocks to zero.
    pub(crate) fn zero(&mut self, first: u64, count: u64) {
        self.forget_regions(first, count);
        let mut number = first;
        while number < first + count {
            let (page, index) = self.locate(number);
            let whole = index == 0 && first + count - number >= PAGE as u64;
            if whole {
                self.stamps[page] = None;
                if let Some(words) = self.words.get_mut(page) {
                    *words = None;
                }
                number += PAGE as u64;
            } else {
                self.write_block(number, 0, None);
                number += 1;
            }
        }
    }

    /// The number of the block at an offset of this memory.
    pub(crate) fn number(&self, offset: u64) -> u64 {
        offset >> self.block.shift()
    }

    fn forget_regions(&mut self, first: u64, count: u64) {
        let (from, to) = (first << self.block.shift(), (first + count) << self.block.shift());
        while let Some((offset, _)) = self.regions.range(from..to).next() {
            let offset = *offset;
            self.regions.remove(&offset);
        }
    }

    /// The number of the last write to the region at an offset.
    pub(crate) fn region_stamp(&self, offset: u64) -> u64 {
        self.regions.get(&offset).copied().unwrap_or(0)
    }

    /// The words of a region.
    pub(crate) fn region(&self, offset: u64, bytes: u32) -> Words {
        if self.words.is_empty() {
            return None;
        }
        let word = |at: u64| {
            let index = (at & (self.block.bytes() - 1)) / 8;
            let block = self.words(self.number(at));
            AtomicU64::new(block.map_or(0, |words| words[index as usize].load(Relaxed)))
        };
        Some((0..u64::from(bytes.div_ceil(8))).map(|index| word(offset + index * 8)).collect())
    }

    /// What a lock carried comes back. The blocks that it lies in are no coherent ones: who finds this number there has got
    /// what was written too late.
    pub(crate) fn write_region(&mut self, offset: u64, bytes: u32, stamp: u64, words: Option<&[AtomicU64]>) {
        self.regions.insert(offset, stamp);
        let end = offset + u64::from(bytes.max(1));
        for number in self.number(offset)..=self.number(end - 1) {
            let (page, index) = self.locate(number);
            if let Some(stamps) = self.stamps.get_mut(page) {
                stamps.get_or_insert_with(|| Box::new([0; PAGE]))[index] = OF_A_REGION;
            }
        }
        if self.words.is_empty() {
            return;
        }
        for at in (0..u64::from(bytes)).step_by(8) {
            let (page, index) = self.locate(self.number(offset + at));
            let page = self.words[page].get_or_insert_with(|| (0..PAGE).map(|_| None).collect());
            let block = page[index].get_or_insert_with(|| zeroes(self.block));
            let word = ((offset + at) & (self.block.bytes() - 1)) / 8;
            let from = words.map_or(0, |words| words[(at / 8) as usize].load(Relaxed));
            block[word as usize].store(from, Relaxed);
        }
    }
}
