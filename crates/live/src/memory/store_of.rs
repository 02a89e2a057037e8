//! The store of one live node: the machines' view of the node's memory and of everybody's contents.

use std::sync::atomic::AtomicU64;

use node::{Access, DataRef, FrameId, Pinned, Reservation, Store};
use wire::{BlockTag, NodeId};

use super::NodeMemory;
use super::data_ref::Place;
use super::words::{clear, copy};

/// The [`Store`] of one node of the rack. Whoever makes one holds the lock of the node's place: the machines
/// of a node work one at a time.
///
/// Contents on other nodes are read where they are. That is sound because a [`DataRef`] stands for contents
/// that do not change until its event is closed, and the message that carries it orders the accesses.
pub struct StoreOf<'a> {
    all: &'a [NodeMemory],
    me: NodeId,
}

/// The words that contents anywhere in the rack consist of; `None` stands for a block of zeroes.
///
/// # Panics
/// If a live store did not make the name.
pub fn contents_of(all: &[NodeMemory], data: DataRef) -> Option<&[AtomicU64]> {
    let (node, place) = Place::of(data);
    let memory = &all[node.index()];
    match place {
        Place::Home(block) => memory.home.words(block),
        Place::Frame(frame) => Some(memory.cache.words(frame)),
        Place::Retained(copy) => Some(memory.retained.words(copy)),
    }
}

impl<'a> StoreOf<'a> {
    /// The store of node `me`, of the rack with these nodes.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn new(all: &'a [NodeMemory], me: NodeId) -> Self {
        assert!(me.index() < all.len(), "{me} of {}", all.len());
        Self { all, me }
    }

    fn memory(&self) -> &'a NodeMemory {
        &self.all[self.me.index()]
    }

    /// The number of a block of this node's own memory.
    fn own_block(&self, tag: BlockTag) -> u64 {
        assert_eq!(tag.home(), self.me, "{tag:?} is at home elsewhere");
        self.memory().home.block_number(tag.addr().offset())
    }
}

impl Store for StoreOf<'_> {
    fn lookup(&self, tag: BlockTag) -> Option<(FrameId, Access)> {
        self.memory().cache.lookup(tag)
    }

    fn tag_of(&self, frame: FrameId) -> Option<BlockTag> {
        self.memory().cache.tag_of(frame)
    }

    fn published(&self, each: impl FnMut(FrameId, BlockTag, Access)) {
        self.memory().cache.published(each);
    }

    fn reserve(&mut self, tag: BlockTag, is_victim: impl Fn(FrameId) -> bool) -> Reservation {
        self.memory().cache.reserve(tag, is_victim)
    }

    fn fill(&mut self, frame: FrameId, data: DataRef) {
        let cache = &self.memory().cache;
        cache.before_fill(frame);
        match contents_of(self.all, data) {
            Some(from) => copy(from, cache.words(frame)),
            None => clear(cache.words(frame)),
        }
    }

    fn publish(&mut self, frame: FrameId, tag: BlockTag, access: Access, pin: bool) {
        self.memory().cache.publish(frame, tag, access, pin);
    }

    fn pin(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.memory().cache.pin(frame)
    }

    fn upgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.memory().cache.upgrade(frame)
    }

    fn downgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.memory().cache.downgrade(frame)
    }

    fn withdraw(&mut self, frame: FrameId) -> Result<(), Pinned> {
        self.memory().cache.withdraw(frame)
    }

    fn release(&mut self, frame: FrameId) {
        self.memory().cache.release(frame);
    }

    fn contents(&self, frame: FrameId) -> DataRef {
        self.memory().cache.assert_holds_contents(frame);
        Place::Frame(frame).on(self.me)
    }

    fn retain(&mut self, frame: FrameId) -> DataRef {
        let memory = self.memory();
        memory.cache.assert_holds_contents(frame);
        Place::Retained(memory.retained.keep(memory.cache.words(frame))).on(self.me)
    }

    fn discard(&mut self, retained: DataRef) {
        match Place::of(retained) {
            (node, Place::Retained(copy)) if node == self.me => self.memory().retained.discard(copy),
            (node, place) => panic!("{place:?} of {node} was not retained by {}", self.me),
        }
    }

    fn home_contents(&self, tag: BlockTag) -> DataRef {
        Place::Home(self.own_block(tag)).on(self.me)
    }

    fn write_home(&mut self, tag: BlockTag, data: DataRef) {
        let block = self.own_block(tag);
        self.memory().home.write(block, contents_of(self.all, data));
    }

    fn zero_home(&mut self, first: BlockTag, bytes: u64) {
        assert_eq!(first.home(), self.me, "{first:?} is at home elsewhere");
        self.memory().home.zero(first.addr().offset(), bytes);
    }
}
