//! What the node's machines do with a frame, one at a time, while application threads hit.

use std::sync::atomic::{
    Ordering::{Relaxed, Release},
    fence,
};

use node::{Access, FrameId, Pinned, Reservation};
use wire::BlockTag;

use super::cache::Cache;

impl Cache {
    pub(super) fn lookup(&self, tag: BlockTag) -> Option<(FrameId, Access)> {
        let tag = self.tag_bits(tag);
        self.frames_of(self.bucket(tag)).find_map(|frame| {
            let access = self.meta(frame).access()?;
            (self.tag(frame).load(Relaxed) == tag).then_some((frame, access))
        })
    }

    pub(super) fn tag_of(&self, frame: FrameId) -> Option<BlockTag> {
        self.meta(frame).access().map(|_| BlockTag::from_bits(self.tag(frame).load(Relaxed)))
    }

    pub(super) fn published(&self, mut each: impl FnMut(FrameId, BlockTag, Access)) {
        for frame in (0..self.frames()).map(FrameId) {
            if let Some(access) = self.meta(frame).access() {
                each(frame, BlockTag::from_bits(self.tag(frame).load(Relaxed)), access);
            }
        }
    }

    pub(super) fn reserve(&self, tag: BlockTag, is_victim: impl Fn(FrameId) -> bool) -> Reservation {
        debug_assert_eq!(self.lookup(tag), None, "{tag:?} has a frame");
        let mut oldest = None;
        for frame in self.frames_of(self.bucket(self.tag_bits(tag))) {
            let meta = self.meta(frame);
            if meta.reserve() {
                return Reservation::Reserved(frame);
            }
            let Some(access) = meta.access() else { continue };
            let age = self.clock.age(meta);
            if !meta.is_pinned()
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

    pub(super) fn publish(&self, frame: FrameId, tag: BlockTag, access: Access, pin: bool) {
        debug_assert_eq!(self.lookup(tag), None, "{tag:?} has a frame already");
        assert_eq!(
            self.bucket(self.tag_bits(tag)),
            frame.0 as usize / super::cache::WAYS,
            "{tag:?}'s bucket"
        );
        let meta = self.meta(frame);
        meta.assert_reserved();
        fence(Release);
        self.tag(frame).store(tag.bits(), Relaxed);
        self.clock.filled();
        self.clock.touch(meta);
        meta.publish(access, pin);
    }

    pub(super) fn pin(&self, frame: FrameId) -> Result<(), Pinned> {
        self.meta(frame).pin()?;
        self.clock.touch(self.meta(frame));
        Ok(())
    }

    pub(super) fn upgrade(&self, frame: FrameId) -> Result<(), Pinned> {
        self.meta(frame).upgrade()?;
        self.clock.touch(self.meta(frame));
        Ok(())
    }
}
