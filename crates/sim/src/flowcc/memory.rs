//! What blocks contain: bytes, or only the number of the last write.
//!
//! One node's store is its cache's frames, the memory that it is home of, and the answers that it may have to give
//! again. A write's number is kept in either case, for the check that every valid copy is the latest.
//!
//! What must always hold: memory that was never written reads as zeroes and costs nothing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use node::{DataRef, FrameId};
use wire::{BlockSize, NodeId};

use super::cache::{Cache, Placement};

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
pub(super) type Words = Option<Box<[AtomicU64]>>;

/// What one node stores.
pub(super) struct Memory {
    pub(super) cache: Cache,
    /// The words of the frames; empty without bytes.
    pub(super) frames: Vec<Words>,
    pub(super) home: Home,
    /// Answers that may have to be given again; free ones have no words.
    pub(super) retained: Vec<(Words, u32)>,
    pub(super) free_retained: Vec<u32>,
}

impl Memory {
    pub(super) fn new(
        block: BlockSize,
        (cache, placement): (u64, Placement),
        memory: u64,
        contents: Contents,
    ) -> Self {
        let cache = Cache::new(block, cache, placement);
        let frames = if contents == Contents::Bytes { cache.frames() } else { 0 };
        Self {
            frames: (0..frames).map(|_| None).collect(),
            cache,
            home: Home::new(block, memory, contents),
            retained: Vec::new(),
            free_retained: Vec::new(),
        }
    }

    /// The words of a frame, made if there are none.
    pub(super) fn frame_words(&mut self, block: BlockSize, frame: FrameId) -> &[AtomicU64] {
        self.frames[frame.0 as usize].get_or_insert_with(|| zeroes(block))
    }
}

/// A block of zeroes.
pub(super) fn zeroes(block: BlockSize) -> Box<[AtomicU64]> {
    (0..block.words()).map(|_| AtomicU64::new(0)).collect()
}

/// Makes `to` the same as `from`.
pub(super) fn copy(from: Option<&[AtomicU64]>, to: &mut Words) {
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

/// The memory that a node is home of.
pub(super) struct Home {
    block: BlockSize,
    stamps: Vec<Option<Box<[u32; PAGE]>>>,
    /// Empty without bytes.
    words: Vec<Option<Box<[Words]>>>,
}

impl Home {
    fn new(block: BlockSize, bytes: u64, contents: Contents) -> Self {
        let pages = usize::try_from(bytes >> block.shift()).expect("it fits in memory").div_ceil(PAGE);
        let of_words = if contents == Contents::Bytes { pages } else { 0 };
        Self {
            block,
            stamps: (0..pages).map(|_| None).collect(),
            words: (0..of_words).map(|_| None).collect(),
        }
    }

    fn place(&self, number: u64) -> (usize, usize) {
        (usize::try_from(number).expect("a block's number") / PAGE, number as usize % PAGE)
    }

    pub(super) fn stamp(&self, number: u64) -> u32 {
        let (page, index) = self.place(number);
        self.stamps[page].as_ref().map_or(0, |stamps| stamps[index])
    }

    pub(super) fn words(&self, number: u64) -> Option<&[AtomicU64]> {
        let (page, index) = self.place(number);
        self.words.get(page)?.as_ref()?[index].as_deref()
    }

    pub(super) fn write(&mut self, number: u64, stamp: u32, words: Option<&[AtomicU64]>) {
        let (page, index) = self.place(number);
        if stamp != 0 || self.stamps[page].is_some() {
            self.stamps[page].get_or_insert_with(|| Box::new([0; PAGE]))[index] = stamp;
        }
        let Some(place) = self.words.get_mut(page) else { return };
        if words.is_some() || place.is_some() {
            let page = place.get_or_insert_with(|| (0..PAGE).map(|_| None).collect());
            copy(words, &mut page[index]);
        }
    }

    /// Sets whole blocks to zero.
    pub(super) fn zero(&mut self, first: u64, count: u64) {
        let mut number = first;
        while number < first + count {
            let (page, index) = self.place(number);
            let whole = index == 0 && first + count - number >= PAGE as u64;
            if whole {
                self.stamps[page] = None;
                if let Some(words) = self.words.get_mut(page) {
                    *words = None;
                }
                number += PAGE as u64;
            } else {
                self.write(number, 0, None);
                number += 1;
            }
        }
    }

    /// The number of the block at an offset of this memory.
    pub(super) fn number(&self, offset: u64) -> u64 {
        offset >> self.block.shift()
    }
}

/// How contents are named where bytes are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Name {
    Home(u64),
    Frame(FrameId),
    Retained(u32),
}

const NODE_SHIFT: u32 = 48;
const KIND_SHIFT: u32 = 46;

impl Name {
    pub(super) const fn on(self, node: NodeId) -> u64 {
        let (kind, index) = match self {
            Self::Home(block) => (0, block),
            Self::Frame(frame) => (1, frame.0 as u64),
            Self::Retained(copy) => (2, copy as u64),
        };
        (node.0 as u64) << NODE_SHIFT | kind << KIND_SHIFT | index
    }

    pub(super) fn of(name: u64) -> (NodeId, Self) {
        let index = name & ((1 << KIND_SHIFT) - 1);
        let name_of = match name >> KIND_SHIFT & 0b11 {
            0 => Self::Home(index),
            1 => Self::Frame(FrameId(index as u32)),
            2 => Self::Retained(index as u32),
            _ => panic!("{name:#x} names nothing"),
        };
        (NodeId((name >> NODE_SHIFT) as u16), name_of)
    }
}

/// What a name stands for: the number of the last write, and the words.
pub(super) fn contents_of(all: &[Memory], kept: Contents, data: DataRef) -> (u32, Option<&[AtomicU64]>) {
    if kept == Contents::Stamps {
        return (data.0 as u32, None);
    }
    let (node, name) = Name::of(data.0);
    let memory = &all[node.index()];
    match name {
        Name::Home(number) => (memory.home.stamp(number), memory.home.words(number)),
        Name::Frame(frame) => (memory.cache.stamp(frame), memory.frames[frame.0 as usize].as_deref()),
        Name::Retained(number) => {
            let (words, stamp) = &memory.retained[number as usize];
            (*stamp, words.as_deref())
        }
    }
}
