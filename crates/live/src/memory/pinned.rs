//! A frame that a thread has to itself for a moment.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release, SeqCst},
    fence,
};

use node::{FrameId, Window};

use super::frame_word::{FrameMeta, PENDING, WRITER, is_pinned};

/// What an unpin found.
#[must_use = "an agent that waits for the frame is never called unless it is told"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unpinned {
    /// Nobody waits for the frame.
    Quiet,
    /// An agent found this frame pinned: the caller has to let the node's machines know (`on_unpinned`), soon
    /// and without holding another pin. Until the agent acts, threads that want to pin the frame let it go
    /// first; if it does not come, they get in after some 70 pauses, and the agent may be refused anew.
    AgentWaits(FrameId),
}

/// A frame that this thread has pinned: no other thread of the node reads or writes its block, and no agent
/// takes the block away, until [`PinnedFrame::unpin`].
///
/// There is no unpin on drop. An agent may wait for it, and telling it means calling the node's machines,
/// which is the caller's business: a caller that runs foreign code with a frame pinned keeps the frame in a
/// guard of its own, which unpins and tells the agent when that code panics. A frame that is just dropped
/// stays pinned for ever.
#[must_use = "the frame stays pinned until it is unpinned"]
pub struct PinnedFrame<'a> {
    frame: FrameId,
    meta: &'a FrameMeta,
    words: &'a [AtomicU64],
}

impl<'a> PinnedFrame<'a> {
    /// The writer bit must have been set for this thread, and a release fence must have followed.
    #[inline]
    pub(super) fn new(frame: FrameId, meta: &'a FrameMeta, words: &'a [AtomicU64]) -> Self {
        Self { frame, meta, words }
    }

    /// Takes over a pin that an agent took on behalf of this thread.
    pub(super) fn adopt(frame: FrameId, meta: &'a FrameMeta, words: &'a [AtomicU64]) -> Self {
        assert!(is_pinned(meta.word.load(Acquire)), "{frame:?} was not pinned for anyone");
        fence(Release);
        Self::new(frame, meta, words)
    }

    /// Which frame it is.
    pub fn frame(&self) -> FrameId {
        self.frame
    }

    /// The `len` bytes from byte `start` of the block. To be written only if the pin was taken for writing.
    ///
    /// # Panics
    /// If the range leaves the block.
    #[inline]
    pub fn window(&self, start: usize, len: usize) -> Window<'_> {
        Window::new(self.words(), start, len)
    }

    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        self.words
    }

    /// Lets others in again. `wrote` says whether anything may have been written.
    #[inline]
    pub fn unpin(self, wrote: bool) -> Unpinned {
        if wrote {
            self.meta.count_write();
        }
        // The writer bit is set, so subtracting it clears it; this returns the other bits in one locked
        // operation, for which a logical operation would need a loop. The pending bit stays: see `Unpinned`.
        let word = self.meta.word.fetch_sub(WRITER, SeqCst);
        debug_assert!(is_pinned(word), "{:?} was pinned by this thread", self.frame);
        if word & PENDING == 0 { Unpinned::Quiet } else { Unpinned::AgentWaits(self.frame) }
    }
}
