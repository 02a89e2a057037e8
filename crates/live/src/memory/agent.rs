//! What the node's machines do with a frame, one at a time, while application threads hit.
//!
//! Threads change a frame's word only by taking and giving back its pin, and take it only of published
//! frames. So here, words of free and reserved frames are simply stored, and words of published ones change
//! by compare-and-swap.

use std::sync::atomic::{
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};

use node::{Access, FrameId, Pinned, Reservation};
use wire::BlockTag;

use super::cache::Cache;
use super::frame_word::{
    FREE, GENERATION, MODIFIED, PENDING, RESERVED, SHARED, STATE, WRITER, access, generation, is_pinned,
    is_readable, state, state_for,
};

impl Cache {
    pub(super) fn lookup(&self, tag: BlockTag) -> Option<(FrameId, Access)> {
        let tag = self.tag_bits(tag);
        self.frames_of(self.bucket(tag)).find_map(|frame| {
            let access = access(self.meta(frame).word.load(Relaxed))?;
            (self.tag(frame).load(Relaxed) == tag).then_some((frame, access))
        })
    }

    pub(super) fn tag_of(&self, frame: FrameId) -> Option<BlockTag> {
        is_readable(self.meta(frame).word.load(Relaxed))
            .then(|| BlockTag::from_bits(self.tag(frame).load(Relaxed)))
    }

    pub(super) fn published(&self, mut each: impl FnMut(FrameId, BlockTag, Access)) {
        for frame in (0..self.frames()).map(FrameId) {
            if let Some(access) = access(self.meta(frame).word.load(Relaxed)) {
                each(frame, BlockTag::from_bits(self.tag(frame).load(Relaxed)), access);
            }
        }
    }

    pub(super) fn reserve(&self, tag: BlockTag, is_victim: impl Fn(FrameId) -> bool) -> Reservation {
        debug_assert_eq!(self.lookup(tag), None, "{tag:?} has a frame");
        let mut oldest = None;
        for frame in self.frames_of(self.bucket(self.tag_bits(tag))) {
            let meta = self.meta(frame);
            let word = meta.word.load(Relaxed);
            if state(word) == FREE {
                meta.word.store(generation(word) | RESERVED, Relaxed);
                return Reservation::Reserved(frame);
            }
            let Some(access) = access(word) else { continue };
            let age = self.clock.age(meta);
            if !is_pinned(word)
                && oldest.is_none_or(|(oldest_age, _, _)| age > oldest_age)
                && !is_victim(frame)
            {
                oldest = Some((age, frame, access));
            }
        }
        match oldest {
            Some((_, frame, access)) => {
                Reservation::Evict { frame, tag: BlockTag::from_bits(self.tag(frame).load(Relaxed)), access }
            }
            None => Reservation::Busy,
        }
    }

    /// Goes before every store into a reserved frame: a reader that sees the new contents sees that its
    /// generation has ended.
    pub(super) fn before_fill(&self, frame: FrameId) {
        self.assert_reserved(frame);
        fence(Release);
    }

    pub(super) fn publish(&self, frame: FrameId, tag: BlockTag, access: Access, pin: bool) {
        self.assert_reserved(frame);
        debug_assert_eq!(self.lookup(tag), None, "{tag:?} has a frame already");
        assert_eq!(
            self.bucket(self.tag_bits(tag)),
            frame.0 as usize / super::cache::WAYS,
            "{tag:?}'s bucket"
        );
        let meta = self.meta(frame);
        fence(Release);
        self.tag(frame).store(tag.bits(), Relaxed);
        self.clock.filled();
        self.clock.touch(meta);
        let generation = generation(meta.word.load(Relaxed));
        meta.word.store(generation | state_for(access) | if pin { WRITER } else { 0 }, Release);
    }

    /// A number that changes with every write of a thread.
    pub(super) fn writes(&self, frame: FrameId) -> u64 {
        u64::from(self.meta(frame).writes.load(Relaxed))
    }

    pub(super) fn pin(&self, frame: FrameId) -> Result<(), Pinned> {
        self.change(frame, |word| word | WRITER)?;
        self.clock.touch(self.meta(frame));
        Ok(())
    }

    pub(super) fn upgrade(&self, frame: FrameId) -> Result<(), Pinned> {
        let word = self.meta(frame).word.load(Relaxed);
        assert_eq!(access(word), Some(Access::Shared), "{frame:?} can be upgraded");
        self.change(frame, |word| word & !STATE | MODIFIED | WRITER)?;
        self.clock.touch(self.meta(frame));
        Ok(())
    }

    pub(super) fn downgrade(&self, frame: FrameId) -> Result<(), Pinned> {
        // Whoever has a shared frame pinned only reads: nothing to wait for.
        if access(self.meta(frame).word.load(Relaxed)) == Some(Access::Shared) {
            return Ok(());
        }
        self.change(frame, |word| word & !STATE | SHARED)
    }

    pub(super) fn withdraw(&self, frame: FrameId) -> Result<(), Pinned> {
        self.change(frame, |word| (generation(word) + GENERATION) | RESERVED)
    }

    pub(super) fn release(&self, frame: FrameId) {
        self.assert_reserved(frame);
        let word = &self.meta(frame).word;
        word.store(generation(word.load(Relaxed)) | FREE, Relaxed);
    }

    /// Changes the word of a published frame, unless a thread has it pinned: then the pending bit makes that
    /// thread's unpin report that an agent waits. Either way the agent has had its turn.
    fn change(&self, frame: FrameId, to: impl Fn(u64) -> u64) -> Result<(), Pinned> {
        let cell = &self.meta(frame).word;
        let mut word = cell.load(Relaxed);
        loop {
            assert!(is_readable(word), "{frame:?} is published");
            let next = if is_pinned(word) { word | PENDING } else { to(word & !PENDING) };
            match cell.compare_exchange_weak(word, next, SeqCst, Relaxed) {
                Ok(_) => return if is_pinned(word) { Err(Pinned) } else { Ok(()) },
                Err(now) => word = now,
            }
        }
    }

    /// The contents are there, and stay: the frame is published or reserved.
    pub(super) fn assert_holds_contents(&self, frame: FrameId) {
        assert_ne!(state(self.meta(frame).word.load(Relaxed)), FREE, "{frame:?} holds something");
    }

    fn assert_reserved(&self, frame: FrameId) {
        assert_eq!(state(self.meta(frame).word.load(Relaxed)), RESERVED, "{frame:?} is reserved");
    }
}
