//! One node's view of all contents: what its machines see as [`node::Store`].
//!
//! With bytes, contents are named by the place where they are, on any node, and copied from there when they are
//! used; that is sound because a [`DataRef`] stands for contents that stay until their event is closed. Without,
//! the name is the contents: the number of the last write.

use std::sync::atomic::AtomicU64;

use node::{Access, DataRef, FrameId, Pinned, Reservation, Store};
use wire::{BlockSize, BlockTag, NodeId};

use super::memory::{Memory, Name, contents_of};
use super::properties::Latest;
use crate::home::{Contents, Home, Words, copy};

/// The store of node `me`.
pub(crate) struct StoreOf<'a> {
    pub(super) all: &'a mut [Memory],
    pub(super) homes: &'a mut [Home],
    pub(super) me: NodeId,
    pub(super) block: BlockSize,
    pub(super) contents: Contents,
    /// What was written last, where that is checked.
    pub(super) latest: Option<&'a mut Latest>,
}

impl StoreOf<'_> {
    fn mine(&self) -> &Memory {
        &self.all[self.me.index()]
    }

    fn mine_mut(&mut self) -> &mut Memory {
        &mut self.all[self.me.index()]
    }

    fn home(&self) -> &Home {
        &self.homes[self.me.index()]
    }

    fn home_mut(&mut self) -> &mut Home {
        &mut self.homes[self.me.index()]
    }

    fn own_block(&self, tag: BlockTag) -> u64 {
        assert_eq!(tag.home(), self.me, "{tag:?} is at home elsewhere");
        self.home().number(tag.addr().offset())
    }

    /// What a name stands for.
    fn look_up(&self, data: DataRef) -> (u32, Option<&[AtomicU64]>) {
        contents_of((self.all, self.homes), self.contents, data)
    }

    /// The name of contents with this stamp here.
    fn name(&self, stamp: u32, name: Name) -> DataRef {
        match self.contents {
            Contents::Stamps => DataRef(u64::from(stamp)),
            Contents::Bytes => DataRef(name.on(self.me)),
        }
    }
}

impl Store for StoreOf<'_> {
    fn lookup(&self, tag: BlockTag) -> Option<(FrameId, Access)> {
        self.mine().cache.lookup(tag)
    }

    fn tag_of(&self, frame: FrameId) -> Option<BlockTag> {
        self.mine().cache.tag_of(frame)
    }

    fn published(&self, each: impl FnMut(FrameId, BlockTag, Access)) {
        self.mine().cache.each_published(each);
    }

    fn reserve(&mut self, tag: BlockTag, is_victim: impl Fn(FrameId) -> bool) -> Reservation {
        self.mine_mut().cache.reserve(tag, is_victim)
    }

    fn fill(&mut self, frame: FrameId, data: DataRef) {
        self.mine().cache.assert_reserved(frame);
        let place = frame.0 as usize;
        let mut words: Words = self.mine_mut().frames.get_mut(place).and_then(Option::take);
        let (stamp, from) = self.look_up(data);
        if self.contents == Contents::Bytes {
            copy(from, &mut words);
        }
        let mine = self.mine_mut();
        mine.cache.set_stamp(frame, stamp);
        if let Some(frame) = mine.frames.get_mut(place) {
            *frame = words;
        }
    }

    fn publish(&mut self, frame: FrameId, tag: BlockTag, access: Access, pin: bool) {
        self.mine_mut().cache.publish(frame, tag, access, pin);
    }

    fn pin(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.mine_mut().cache.pin(frame)
    }

    fn upgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.mine_mut().cache.upgrade(frame)
    }

    fn downgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.mine_mut().cache.downgrade(frame)
    }

    fn withdraw(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.mine_mut().cache.withdraw(frame)
    }

    fn release(&mut self, frame: FrameId) {
        self.mine_mut().cache.release(frame);
    }

    fn writes(&self, frame: FrameId) -> u64 {
        u64::from(self.mine().cache.stamp(frame))
    }

    fn contents(&self, frame: FrameId) -> DataRef {
        self.mine().cache.assert_holds_contents(frame);
        self.name(self.mine().cache.stamp(frame), Name::Frame(frame))
    }

    fn retain(&mut self, frame: FrameId) -> DataRef {
        self.keep(self.contents(frame))
    }

    fn keep(&mut self, contents: DataRef) -> DataRef {
        if self.contents == Contents::Stamps {
            return contents;
        }
        let (stamp, from) = self.look_up(contents);
        let mut words = None;
        copy(from, &mut words);
        let mine = self.mine_mut();
        let number = mine.free_retained.pop().unwrap_or_else(|| {
            mine.retained.push((None, 0));
            u32::try_from(mine.retained.len() - 1).expect("fewer than 2^32 answers are kept")
        });
        mine.retained[number as usize] = (words, stamp);
        self.name(stamp, Name::Retained(number))
    }

    fn read(&mut self, frame: FrameId) -> Result<DataRef, Pinned> {
        self.mine_mut().cache.pin(frame)?;
        let data = self.retain(frame);
        self.mine_mut().cache.unpin(frame);
        Ok(data)
    }

    fn discard(&mut self, retained: DataRef) {
        if self.contents == Contents::Stamps {
            return;
        }
        match Name::of(retained.0) {
            (node, Name::Retained(number)) if node == self.me => {
                let mine = self.mine_mut();
                mine.retained[number as usize].0 = None;
                mine.free_retained.push(number);
            }
            other => panic!("{other:?} was not retained by {}", self.me),
        }
    }

    fn home_contents(&self, tag: BlockTag) -> DataRef {
        let number = self.own_block(tag);
        self.name(self.home().stamp(number), Name::Home(number))
    }

    fn write_home(&mut self, tag: BlockTag, data: DataRef) {
        let number = self.own_block(tag);
        // Contents are copied from one place into another of the same array of memories: through a block of words.
        let (stamp, from) = self.look_up(data);
        let mut words = None;
        copy(from, &mut words);
        self.home_mut().write(number, stamp, words.as_deref());
    }

    fn zero_home(&mut self, first: BlockTag, bytes: u64) {
        let number = self.own_block(first);
        let count = bytes.div_ceil(self.block.bytes());
        self.home_mut().zero(number, count);
        if let Some(latest) = &mut self.latest {
            latest.zeroed(first, count, self.block);
        }
    }
}
