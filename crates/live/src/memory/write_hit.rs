//! Write hits of application threads: whoever writes has the frame pinned, alone.

use std::sync::atomic::{
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};

use wire::GlobalAddr;

use super::cache::Cache;
use super::frame_word::{MODIFIED, PENDING, WRITER, generation, is_pinned, state};
use super::hints::{Hint, Hints};
use super::pinned::{PinnedFrame, Unpinned};
use super::wait::Wait;

/// Why a frame was not pinned.
enum NotPinned {
    /// It does not hold the block any more.
    Gone,
    /// This node may only read the block.
    ReadOnly,
}

impl Cache {
    /// Writes the aligned word at `addr`, if its block is cached here and writable. `None` is a miss.
    ///
    /// While another thread of this node writes in the block, this waits for it.
    #[inline]
    pub fn store_word(&self, hints: &mut Hints, addr: GlobalAddr, value: u64) -> Option<Unpinned> {
        debug_assert!(addr.bits().is_multiple_of(8), "{addr} is no aligned word");
        let pinned = self.pin_for_write(hints, addr)?;
        pinned.words()[((addr.bits() / 8) & self.word_mask) as usize].store(value, Relaxed);
        Some(pinned.unpin(true))
    }

    /// The same, if it is where the hints say, and nobody writes there.
    #[inline(always)]
    pub fn store_word_hinted(&self, hints: &mut Hints, addr: GlobalAddr, value: u64) -> Option<Unpinned> {
        let pinned = self.pin_hinted(hints, addr)?;
        pinned.words()[((addr.bits() / 8) & self.word_mask) as usize].store(value, Relaxed);
        Some(pinned.unpin(true))
    }

    /// Pins the block of `addr` for writing, if it is cached here and writable. `None` is a miss.
    ///
    /// While another thread of this node writes in the block, this waits for it; so a thread that has a block
    /// pinned must not touch that block in any other way.
    #[inline]
    pub fn pin_for_write(&self, hints: &mut Hints, addr: GlobalAddr) -> Option<PinnedFrame<'_>> {
        if let Some(pinned) = self.pin_hinted(hints, addr) {
            return Some(pinned);
        }
        let (row, tag) = (Hints::row(addr.bits(), self.shift), addr.bits() & self.tag_mask);
        self.pin_by_probe(hints, row, tag, true)
    }

    #[inline(always)]
    fn pin_hinted(&self, hints: &mut Hints, addr: GlobalAddr) -> Option<PinnedFrame<'_>> {
        let tag = addr.bits() & self.tag_mask;
        let row = Hints::row(addr.bits(), self.shift);
        let hint = hints.get(row, self.clock.key(tag))?;
        let meta = self.meta(hint.frame);
        let idle = hint.generation | MODIFIED;
        if meta.word.compare_exchange(idle, idle | WRITER, SeqCst, Relaxed).is_err() {
            return None;
        }
        fence(Release);
        hints.count_hit();
        Some(PinnedFrame::new(hint.frame, meta, self.words(hint.frame)))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn pin_by_probe(
        &self,
        hints: &mut Hints,
        row: usize,
        tag: u64,
        for_write: bool,
    ) -> Option<PinnedFrame<'_>> {
        loop {
            let hint = self.probe_and_hint(hints, row, tag)?;
            match self.wait_for_pin(hint, for_write) {
                Ok(pinned) => {
                    hints.count_hit();
                    return Some(pinned);
                }
                Err(NotPinned::Gone) => {}
                Err(NotPinned::ReadOnly) => return None,
            }
        }
    }

    fn wait_for_pin(&self, hint: Hint, for_write: bool) -> Result<PinnedFrame<'_>, NotPinned> {
        let meta = self.meta(hint.frame);
        let mut wait = Wait::default();
        loop {
            let word = meta.word.load(Relaxed);
            if generation(word) != hint.generation {
                return Err(NotPinned::Gone);
            }
            if for_write && state(word) != MODIFIED {
                return Err(NotPinned::ReadOnly);
            }
            if may_pin(word, wait.has_been_courteous()) {
                let pinned = word & !PENDING | WRITER;
                if meta.word.compare_exchange(word, pinned, SeqCst, Relaxed).is_ok() {
                    // Readers that see what is stored from now on see the writer bit, too.
                    fence(Release);
                    return Ok(PinnedFrame::new(hint.frame, meta, self.words(hint.frame)));
                }
            }
            wait.pause();
        }
    }
}

/// Whether a thread may take the pin of a frame with this word. If it is pending but not pinned, another
/// thread has been told that an agent waits and is on its way to it: the agent goes next. But its machine may
/// have lost interest, so a thread that has been courteous for a while goes on.
const fn may_pin(word: u64, courteous: bool) -> bool {
    !is_pinned(word) && (word & PENDING == 0 || courteous)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_leave_a_frame_to_its_holder_always_and_to_a_waiting_agent_for_a_while() {
        for (word, at_first, in_the_end) in [
            (MODIFIED, true, true),
            (MODIFIED | PENDING, false, true),
            (MODIFIED | WRITER, false, false),
            (MODIFIED | PENDING | WRITER, false, false),
        ] {
            assert_eq!((may_pin(word, false), may_pin(word, true)), (at_first, in_the_end), "{word:b}");
        }
    }
}
