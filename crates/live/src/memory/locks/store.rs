//! The lock store of one live node: its machine's view of the node's copies and home memory, and of everybody's data.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;

use node::DataRef;
use node::locks::{Full, LockStore, Users};
use transport::Contents;
use wire::{GlobalAddr, Mode, NodeId, SIZED, region_bytes};

use super::lock_data::LockLocation;
use super::{Slot, sized};
use crate::memory::words::copy_contents;
use crate::memory::{NodeMemory, StoreOf};

/// The [`LockStore`] of one node. Whoever makes one holds the lock of the node's actor.
pub struct LockStoreOf<'a> {
    /// The same of the node's blocks: where its memory is, and what came with the message that is being handled.
    blocks: StoreOf<'a>,
    /// Messages whose data are needed longer than they are handled.
    kept: &'a [Box<[u64]>],
    /// The slot that was looked for last. Slots come and go by this store only, as long as there is one.
    found: Cell<Option<(GlobalAddr, Slot<'a>)>>,
}

impl<'a> LockStoreOf<'a> {
    /// The store of the locks of the node that has this store of its blocks.
    pub(crate) fn new(blocks: StoreOf<'a>, kept: &'a [Box<[u64]>]) -> Self {
        Self { blocks, kept, found: Cell::new(None) }
    }

    /// The data that came with the message that is being handled.
    pub(crate) fn received(node: NodeId) -> DataRef {
        LockLocation::Received.on(node)
    }

    /// The data of the kept message with this number.
    pub(crate) fn kept(node: NodeId, number: usize) -> DataRef {
        LockLocation::Kept(u32::try_from(number).expect("few messages are kept")).on(node)
    }

    /// The copy that a node with this memory has, which it keeps until who it was moved to has received it.
    pub(crate) fn copy_of(memory: &NodeMemory, node: NodeId, lock: GlobalAddr) -> DataRef {
        LockLocation::Copy(memory.locks.slot_of(lock).number()).on(node)
    }

    /// What counts of a region of this length that a name stands for, to be sent. What is not in one piece is put together in
    /// `scratch`.
    pub(crate) fn to_send<'s>(&'s self, data: DataRef, len: u32, scratch: &'s mut Vec<u64>) -> Contents<'s> {
        match LockLocation::of(data) {
            (node, LockLocation::Home(offset)) => {
                let home = &self.blocks.memory_of(node).home;
                let mut count = region_bytes(len) as usize;
                if len & SIZED != 0 {
                    let first = count.min(sized::WORDS * 8);
                    count = sized::bytes(home.region(offset, first, scratch), len) as usize;
                }
                home.region(offset, count, scratch)
            }
            _ => sized::part(self.find(data), len),
        }
    }

    fn find(&self, data: DataRef) -> Contents<'a> {
        match LockLocation::of(data) {
            (node, LockLocation::Copy(slot)) => {
                let copies = &self.blocks.memory_of(node).locks;
                Contents::Shared(copies.words(copies.slot(slot)))
            }
            (_, LockLocation::Received) => self.blocks.received,
            (_, LockLocation::Kept(number)) => Contents::Own(&self.kept[number as usize]),
            (_, LockLocation::Home(_)) => unreachable!("home memory may be in several pieces"),
        }
    }

    fn copy_to(&self, data: DataRef, to: &[AtomicU64]) {
        match LockLocation::of(data) {
            (node, LockLocation::Home(offset)) => self.blocks.memory_of(node).home.copy_region(offset, to),
            // Behind what counts is what was there: nobody looks at it.
            _ => {
                let from = self.find(data);
                copy_contents(from, &to[..from.bytes() / 8]);
            }
        }
    }

    /// The slot that a lock has on this node.
    #[inline]
    fn slot_of(&self, lock: GlobalAddr) -> Slot<'a> {
        if let Some((found, slot)) = self.found.get()
            && found == lock
        {
            return slot;
        }
        let slot = self.blocks.memory().locks.slot_of(lock);
        self.found.set(Some((lock, slot)));
        slot
    }
}

impl LockStore for LockStoreOf<'_> {
    fn reserve(&mut self, lock: GlobalAddr, len: u32, must: bool) -> Result<(), Full> {
        let slot = self.blocks.memory().locks.reserve(lock, len, must)?;
        self.found.set(Some((lock, slot)));
        Ok(())
    }

    fn release(&mut self, lock: GlobalAddr) {
        self.blocks.memory().locks.release(lock, self.slot_of(lock));
        self.found.set(None);
    }

    fn fill(&mut self, lock: GlobalAddr, data: DataRef) {
        let slot = self.slot_of(lock);
        let users = slot.gate().users();
        assert!(users.is_none(), "a copy with {users:?} inside is filled: {lock}");
        self.copy_to(data, self.blocks.memory().locks.words(slot));
    }

    fn contents(&self, lock: GlobalAddr) -> DataRef {
        let slot = self.slot_of(lock);
        let users = slot.gate().users();
        assert!(!users.writer, "what is being written is sent: {lock}");
        LockLocation::Copy(slot.number()).on(self.blocks.me)
    }

    fn open(&mut self, lock: GlobalAddr, mode: Mode) {
        self.blocks.memory().locks.is_awaited(lock, false);
        self.slot_of(lock).gate().open(mode);
    }

    fn close(&mut self, lock: GlobalAddr) -> Users {
        let users = self.slot_of(lock).gate().close();
        if users.writer {
            self.blocks.memory().locks.is_awaited(lock, true);
        }
        users
    }

    fn admit(&mut self, lock: GlobalAddr, mode: Mode) {
        self.slot_of(lock).gate().admit(mode);
    }

    fn home_contents(&self, lock: GlobalAddr, _: u32) -> DataRef {
        LockLocation::Home(lock.offset()).on(self.blocks.me)
    }

    fn write_home(&mut self, lock: GlobalAddr, len: u32, data: DataRef) {
        let from = self.find(data);
        assert!(from.bytes() <= region_bytes(len) as usize, "what came is of this region");
        self.blocks.memory().home.write_region(lock.offset(), from);
    }
}
