//! Blocks of a mapping that stay where they are.
//!
//! Unsafe code: plain bytes of memory that is otherwise seen as atomic words.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

use node::FrameId;

use super::Mapping;

/// Blocks of a mapping that no other node gets to write, and no call of this process, as long as this is there.
#[must_use = "the blocks are pinned until this is dropped"]
pub struct PinnedRange<M: Deref<Target = Mapping>> {
    mapping: M,
    frames: Vec<FrameId>,
}

impl<M: Deref<Target = Mapping>> PinnedRange<M> {
    pub(super) const fn none_of(mapping: M) -> Self {
        Self { mapping, frames: Vec::new() }
    }

    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(super) fn push(&mut self, frame: FrameId) {
        self.frames.push(frame);
    }
}

impl<M: Deref<Target = Mapping>> Drop for PinnedRange<M> {
    fn drop(&mut self) {
        let mut context = self.mapping.context();
        for frame in self.frames.drain(..) {
            self.mapping.node().end_pin(&mut context, frame);
        }
    }
}

/// Bytes of a mapping that nobody else has meanwhile.
#[must_use = "the bytes are pinned until this is dropped"]
pub struct PinnedBytes<'a> {
    pinned: PinnedRange<&'a Mapping>,
    /// In the blocks of the mapping.
    first: usize,
    len: usize,
}

impl<'a> PinnedBytes<'a> {
    /// These bytes are pinned to be written, and the mapping is borrowed uniquely.
    pub(super) fn new(pinned: PinnedRange<&'a Mapping>, first: usize, len: usize) -> Self {
        assert!(first + len <= size_of_val(pinned.mapping.all()), "{first}+{len}");
        Self { pinned, first, len }
    }

    fn start(&self) -> *mut u8 {
        self.pinned.mapping.all().as_ptr().cast::<u8>().wrapping_add(self.first).cast_mut()
    }
}

impl Deref for PinnedBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes lie in the mapping (`new`), which is mapped as long as it is borrowed. Nobody changes them: `new` is
        // given a unique borrow of the only mapping of this range in the process, and the blocks are pinned, so that neither
        // calls nor other nodes get them.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }
}

impl DerefMut for PinnedBytes<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the blocks are pinned to be written. Writing is allowed through a pointer to atomics behind a
        // shared reference, as they are `UnsafeCell`s.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}
