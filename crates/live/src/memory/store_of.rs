//! The store of one live node: the machines' view of the node's memory and of everybody's contents.
//!
//! A frame is one of the cache, or a page of mapped memory ([`super::pages`]); their numbers follow each other.

use std::sync::atomic::AtomicU64;

use node::{Access, DataRef, FrameId, Pinned, Reservation, Store, peeked_bytes};
use transport::Contents;
use wire::{BlockTag, NodeId, Packet};

use super::Unpinned;
use super::data_ref::Location;
use super::locks::LockStoreOf;
use super::words::copy_contents;
use super::{HomeMemory, NodeMemory};

/// The [`Store`] of one node of the rack. Whoever makes one holds the lock of the node's actor: the machines
/// of a node work one at a time.
///
/// Contents on other nodes of this process are read where they are. That is sound because a [`DataRef`] stands for
/// contents that do not change until its event is closed, and the message that carries it orders the accesses.
/// Contents from other processes come with the message that is being handled.
#[derive(Clone, Copy)]
pub struct StoreOf<'a> {
    /// The nodes of this process, from `first` on.
    here: &'a [NodeMemory],
    first: NodeId,
    pub(crate) me: NodeId,
    pub(crate) received: Contents<'a>,
}

/// What contents in this process consist of.
///
/// # Panics
/// If a live store did not make the name.
pub fn contents_of(all: &[NodeMemory], data: DataRef) -> Option<&[AtomicU64]> {
    words_of(all, NodeId(0), data)
}

fn words_of(here: &[NodeMemory], first: NodeId, data: DataRef) -> Option<&[AtomicU64]> {
    let (node, location) = Location::of(data);
    let memory = &here[node.index() - first.index()];
    match location {
        Location::Home(block) => memory.home.words(block),
        Location::Copied(nth, block) => memory.copied_home(nth).words(block),
        Location::Frame(frame) => Some(memory.frame(frame).1),
        Location::Retained(copy) => Some(memory.retained.words(copy)),
        Location::Received => panic!("what was received is no memory of a node"),
    }
}

impl<'a> StoreOf<'a> {
    /// The store of node `me`, of the rack with these nodes.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn new(all: &'a [NodeMemory], me: NodeId) -> Self {
        assert!(me.index() < all.len(), "{me} of {}", all.len());
        Self { here: all, first: NodeId(0), me, received: Contents::None }
    }

    /// The store of node `me`, alone in this process, while it handles a message with these contents.
    pub fn alone(memory: &'a NodeMemory, me: NodeId, received: Contents<'a>) -> Self {
        Self { here: std::slice::from_ref(memory), first: me, me, received }
    }

    /// The contents that came with the message that is being handled.
    pub(crate) fn received(node: NodeId) -> DataRef {
        Location::Received.on(node)
    }

    /// A copy of what was received that stays when the message is gone. Given back by [`StoreOf::let_go`].
    pub(crate) fn keep_received(&self) -> DataRef {
        Location::Retained(self.memory().retained.keep(self.received)).on(self.me)
    }

    /// Gives a copy back.
    pub(crate) fn let_go(&mut self, kept: DataRef) {
        self.discard(kept);
    }

    /// What a name stands for: in this process, or received.
    pub(crate) fn find(&self, data: DataRef) -> Contents<'a> {
        match Location::of(data) {
            (_, Location::Received) => self.received,
            _ => match words_of(self.here, self.first, data) {
                Some(words) => Contents::Shared(words),
                None => Contents::Zeroes(self.memory().cache.block_size().len()),
            },
        }
    }

    /// What travels with a packet: a block, or for the answer to a PEEK what was asked for of it.
    pub(crate) fn contents_with(&self, packet: &Packet, data: DataRef) -> Contents<'a> {
        let contents = self.find(data);
        match (peeked_bytes(packet), Location::of(data)) {
            (Some((start, len)), (_, location)) if location != Location::Received => {
                contents.part(start, len)
            }
            _ => contents,
        }
    }

    /// The store of the node's locks, as it handles the same message; `kept` are those whose data are needed longer.
    pub(crate) fn of_locks(self, kept: &'a [Box<[u64]>]) -> LockStoreOf<'a> {
        LockStoreOf::new(self, kept)
    }

    pub(super) fn memory(&self) -> &'a NodeMemory {
        self.memory_of(self.me)
    }

    pub(super) fn memory_of(&self, node: NodeId) -> &'a NodeMemory {
        &self.here[node.index() - self.first.index()]
    }

    /// The memory of a block that this node has, and which one of its memories it is.
    fn home_of(&self, tag: BlockTag) -> (&'a HomeMemory, usize) {
        self.memory().home_of(tag.home(), self.me)
    }
}

/// Calls the same of the cache, with a frame, or of the pages, with a slot.
macro_rules! at_frame {
    ($memory:expr, $frame:expr, $call:ident($($argument:expr),*)) => {{
        let memory = $memory;
        match memory.page($frame) {
            Some((pages, slot)) => pages.$call(slot $(, $argument)*),
            None => memory.cache.$call($frame $(, $argument)*),
        }
    }};
}

impl Store for StoreOf<'_> {
    fn lookup(&self, tag: BlockTag) -> Option<(FrameId, Access)> {
        let memory = self.memory();
        // What was cached before its range was mapped stays where it is until it is evicted.
        memory.pages().and_then(|pages| pages.lookup(tag)).or_else(|| memory.cache.lookup(tag))
    }

    fn tag_of(&self, frame: FrameId) -> Option<BlockTag> {
        at_frame!(self.memory(), frame, tag_of())
    }

    fn published(&self, mut each: impl FnMut(FrameId, BlockTag, Access)) {
        self.memory().cache.published(&mut each);
        if let Some(pages) = self.memory().pages() {
            pages.published(each);
        }
    }

    fn reserve(&mut self, tag: BlockTag, is_victim: impl Fn(FrameId) -> bool) -> Reservation {
        let memory = self.memory();
        match memory.pages().filter(|pages| pages.covers(tag)) {
            Some(pages) => pages.reserve(tag, is_victim),
            None => memory.cache.reserve(tag, is_victim),
        }
    }

    fn assign(&mut self, frame: FrameId, tag: BlockTag) {
        if let Some((pages, slot)) = self.memory().page(frame) {
            pages.assign(slot, tag);
        }
    }

    fn fill(&mut self, frame: FrameId, data: DataRef) {
        let (meta, words) = self.memory().frame(frame);
        meta.before_fill();
        copy_contents(self.find(data), words);
    }

    fn publish(&mut self, frame: FrameId, tag: BlockTag, access: Access, pin: bool) {
        at_frame!(self.memory(), frame, publish(tag, access, pin));
    }

    fn pin(&mut self, frame: FrameId) -> Result<(), Pinned> {
        at_frame!(self.memory(), frame, pin())
    }

    fn upgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        at_frame!(self.memory(), frame, upgrade())
    }

    fn downgrade(&mut self, frame: FrameId) -> Result<(), Pinned> {
        match self.memory().page(frame) {
            Some((pages, slot)) => pages.downgrade(slot),
            None => self.memory().frame(frame).0.downgrade(),
        }
    }

    fn withdraw(&mut self, frame: FrameId) -> Result<(), Pinned> {
        match self.memory().page(frame) {
            Some((pages, slot)) => pages.withdraw(slot),
            None => self.memory().frame(frame).0.withdraw(),
        }
    }

    fn release(&mut self, frame: FrameId) {
        match self.memory().page(frame) {
            Some((pages, slot)) => pages.release(slot),
            None => self.memory().frame(frame).0.release(),
        }
    }

    fn writes(&self, frame: FrameId) -> u64 {
        match self.memory().page(frame) {
            Some((pages, slot)) => pages.writes(slot),
            None => self.memory().frame(frame).0.writes(),
        }
    }

    fn contents(&self, frame: FrameId) -> DataRef {
        self.memory().frame(frame).0.assert_holds_contents();
        Location::Frame(frame).on(self.me)
    }

    fn retain(&mut self, frame: FrameId) -> DataRef {
        let memory = self.memory();
        let (meta, words) = memory.frame(frame);
        meta.assert_holds_contents();
        Location::Retained(memory.retained.keep(Contents::Shared(words))).on(self.me)
    }

    fn read(&mut self, frame: FrameId) -> Result<DataRef, Pinned> {
        // With the pin no thread writes in it. No agent runs meanwhile: the caller has the lock of the actor.
        self.pin(frame)?;
        let data = self.retain(frame);
        if let Some((pages, slot)) = self.memory().page(frame) {
            pages.let_write(slot);
        }
        // Whoever was refused before us is the business of the thread that had the pin then.
        let _: Unpinned = self.memory().adopt(frame).unpin(false);
        Ok(data)
    }

    fn keep(&mut self, data: DataRef) -> DataRef {
        Location::Retained(self.memory().retained.keep(self.find(data))).on(self.me)
    }

    fn discard(&mut self, retained: DataRef) {
        match Location::of(retained) {
            (node, Location::Retained(copy)) if node == self.me => self.memory().retained.discard(copy),
            (node, location) => panic!("{location:?} of {node} was not retained by {}", self.me),
        }
    }

    fn home_contents(&self, tag: BlockTag) -> DataRef {
        let (home, which) = self.home_of(tag);
        let block = home.block_number(tag.addr().offset());
        let location = which.checked_sub(1).map_or(Location::Home(block), |nth| Location::Copied(nth, block));
        location.on(self.me)
    }

    fn write_home(&mut self, tag: BlockTag, data: DataRef) {
        let home = self.home_of(tag).0;
        home.write(home.block_number(tag.addr().offset()), self.find(data));
    }

    fn zero_home(&mut self, first: BlockTag, bytes: u64) {
        self.home_of(first).0.zero(first.addr().offset(), bytes);
    }
}
