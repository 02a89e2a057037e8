//! What blocks contain: bytes, or only the number of the last write.
//!
//! One node's store is its cache's frames, the memory that it is home of ([`Home`]), and the answers that it may have to
//! give again. A write's number is kept in either case, for the check that every valid copy is the latest.
//!
//! What must always hold: what a name stands for stays until its event is closed.

use std::sync::atomic::AtomicU64;

use node::{DataRef, FrameId};
use wire::{BlockSize, NodeId};

use super::cache::{Cache, Placement};
use crate::home::{Contents, Home, Words, zeroes};

/// What one node stores, but for the memory that it is home of.
pub(super) struct Memory {
    pub(super) cache: Cache,
    /// The words of the frames; empty without bytes.
    pub(super) frames: Vec<Words>,
    /// Answers that may have to be given again; free ones have no words.
    pub(super) retained: Vec<(Words, u32)>,
    pub(super) free_retained: Vec<u32>,
}

impl Memory {
    pub(super) fn new(block: BlockSize, (cache, placement): (u64, Placement), contents: Contents) -> Self {
        let cache = Cache::new(block, cache, placement);
        let frames = if contents == Contents::Bytes { cache.frames() } else { 0 };
        Self {
            frames: (0..frames).map(|_| None).collect(),
            cache,
            retained: Vec::new(),
            free_retained: Vec::new(),
        }
    }

    /// The words of a frame, made if there are none.
    pub(super) fn frame_words(&mut self, block: BlockSize, frame: FrameId) -> &[AtomicU64] {
        self.frames[frame.0 as usize].get_or_insert_with(|| zeroes(block))
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
pub(super) fn contents_of<'a>(
    (all, homes): (&'a [Memory], &'a [Home]),
    kept: Contents,
    data: DataRef,
) -> (u32, Option<&'a [AtomicU64]>) {
    if kept == Contents::Stamps {
        return (data.0 as u32, None);
    }
    let (node, name) = Name::of(data.0);
    let memory = &all[node.index()];
    match name {
        Name::Home(number) => (homes[node.index()].stamp(number), homes[node.index()].words(number)),
        Name::Frame(frame) => (memory.cache.stamp(frame), memory.frames[frame.0 as usize].as_deref()),
        Name::Retained(number) => {
            let (words, stamp) = &memory.retained[number as usize];
            (*stamp, words.as_deref())
        }
    }
}
