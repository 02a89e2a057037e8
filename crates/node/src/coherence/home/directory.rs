//! The directory entries that a home agent keeps for its blocks: the same four things that the switch's
//! arrays hold, and who keeps the entry now.
//!
//! Entries of data blocks stand in pages, so that an untouched part of the memory costs nothing; the entries
//! of application locks are few and stand in a map. An entry takes [`ENTRY_BYTES`] bytes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sorted::Map;
use wire::{BlockSize, BlockTag, Copyset, GlobalStatus, PacketKind};

/// Bytes of an entry.
pub const ENTRY_BYTES: usize = size_of::<Entry>();
const ENTRIES_PER_PAGE: usize = 256;

/// Who decides about a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Keeper {
    /// This home agent.
    #[default]
    Home,
    /// The switch; or it is on its way there or back, and nobody decides.
    Switch,
}

/// What is known of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Entry {
    /// The nodes with a copy.
    pub copyset: Copyset,
    /// Copies asked for data or invalidated in this epoch.
    pub heat: u32,
    lock: u16,
    /// The state of the block.
    pub status: GlobalStatus,
    /// Who keeps the entry. While it is the switch, the other fields mean nothing.
    pub keeper: Keeper,
}

/// The highest bit of a lock is its writer, the rest counts readers (the LOCK array, section 5.1.1).
const WRITER: u16 = 1 << 15;

impl Entry {
    /// Takes the lock, if it can be had.
    pub fn try_lock(&mut self, for_reading: bool) -> bool {
        let free = if for_reading { self.lock < WRITER - 1 } else { self.lock == 0 };
        if free {
            self.lock = if for_reading { self.lock + 1 } else { WRITER };
        }
        free
    }

    /// Gives the lock back.
    ///
    /// # Panics
    /// If it was not held that way.
    pub fn unlock(&mut self, for_reading: bool) {
        let held = if for_reading { (1..WRITER).contains(&self.lock) } else { self.lock == WRITER };
        assert!(held, "unlocked for {} what is {self:?}", if for_reading { "reading" } else { "writing" });
        self.lock = if for_reading { self.lock - 1 } else { 0 };
    }

    /// True if somebody holds the lock.
    pub fn is_locked(&self) -> bool {
        self.lock != 0
    }
}

/// The entries of one home.
pub struct Directory {
    block: BlockSize,
    pages: Vec<Option<Box<[Entry; ENTRIES_PER_PAGE]>>>,
    locks: Map<BlockTag, Entry>,
}

impl Directory {
    /// The directory of a memory of `bytes` bytes: all blocks unshared.
    pub fn new(block: BlockSize, bytes: u64) -> Self {
        let blocks = usize::try_from(bytes >> block.shift()).expect("a directory fits in memory");
        let pages = core::iter::repeat_with(|| None).take(blocks.div_ceil(ENTRIES_PER_PAGE));
        Self { block, pages: pages.collect(), locks: Map::new() }
    }

    fn place(&self, tag: BlockTag) -> (usize, usize) {
        let number = usize::try_from(tag.addr().offset() >> self.block.shift()).unwrap_or(usize::MAX);
        (number / ENTRIES_PER_PAGE, number % ENTRIES_PER_PAGE)
    }

    /// True if such an event can be about this entry: locks are taken on lock entries, everything else is about
    /// blocks, and a block's tag is the address of its first byte.
    pub fn is_entry_for(&self, event: PacketKind, tag: BlockTag) -> bool {
        let lock = matches!(event, PacketKind::LockRead | PacketKind::LockWrite);
        tag.is_lock_entry() == lock && self.block.offset_in_block(tag.addr()) == 0
    }

    /// True for a block of this home's memory.
    pub fn covers(&self, tag: BlockTag) -> bool {
        self.place(tag).0 < self.pages.len()
    }

    /// The entry of a block, made if it is the first time.
    ///
    /// # Panics
    /// If the block is not in this home's memory.
    pub fn entry(&mut self, tag: BlockTag) -> &mut Entry {
        if tag.is_lock_entry() {
            return self.locks.entry(tag).or_default();
        }
        let (page, index) = self.place(tag);
        let page = self.pages[page].get_or_insert_with(|| Box::new([Entry::default(); ENTRIES_PER_PAGE]));
        &mut page[index]
    }

    /// The entry of a block as it is; a fresh one where none was made.
    pub fn get(&self, tag: BlockTag) -> Entry {
        if tag.is_lock_entry() {
            return self.locks.get(&tag).copied().unwrap_or_default();
        }
        let (page, index) = self.place(tag);
        self.pages.get(page).and_then(Option::as_ref).map_or(Entry::default(), |page| page[index])
    }

    /// The entries of locks that somebody holds, with their tags.
    pub fn lock_entries(&self) -> impl Iterator<Item = (BlockTag, &Entry)> {
        self.locks.iter().map(|(tag, entry)| (*tag, entry))
    }

    /// Drops the entries of all locks.
    pub(super) fn forget_locks(&mut self) {
        self.locks.clear();
    }

    /// The entries that were made, to be changed.
    pub(super) fn entries_mut(&mut self, home: wire::NodeId) -> impl Iterator<Item = (BlockTag, &mut Entry)> {
        let block = self.block;
        self.pages.iter_mut().enumerate().flat_map(move |(page, entries)| {
            entries.iter_mut().flat_map(move |entries| {
                entries.iter_mut().enumerate().map(move |(index, entry)| {
                    let offset = ((page * ENTRIES_PER_PAGE + index) as u64) << block.shift();
                    (block.tag(wire::GlobalAddr::new(home, offset)), entry)
                })
            })
        })
    }

    /// Drops the entry of a lock that nobody holds.
    pub fn tidy(&mut self, tag: BlockTag) {
        if tag.is_lock_entry() && self.locks.get(&tag).is_some_and(|entry| !entry.is_locked()) {
            self.locks.remove(&tag);
        }
    }

    /// Bytes that the directory takes now.
    pub fn bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count();
        self.pages.capacity() * size_of::<usize>()
            + pages * ENTRIES_PER_PAGE * ENTRY_BYTES
            + self.locks.len() * (ENTRY_BYTES + size_of::<BlockTag>())
    }

    /// True if all entries of blocks that were made are such.
    pub fn all(&self, such: impl Fn(&Entry) -> bool) -> bool {
        self.pages.iter().flatten().all(|page| page.iter().all(&such))
    }

    /// The entries that were made, with their tags.
    pub fn entries(&self, home: wire::NodeId) -> impl Iterator<Item = (BlockTag, &Entry)> {
        let block = self.block;
        self.pages.iter().enumerate().flat_map(move |(page, entries)| {
            entries.iter().flat_map(move |entries| {
                entries.iter().enumerate().map(move |(index, entry)| {
                    let offset = ((page * ENTRIES_PER_PAGE + index) as u64) << block.shift();
                    (block.tag(wire::GlobalAddr::new(home, offset)), entry)
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_sixteen_bytes() {
        assert_eq!(ENTRY_BYTES, 16);
    }

    #[test]
    fn the_lock_admits_readers_together_and_writers_alone() {
        let mut entry = Entry::default();
        assert!(entry.try_lock(true) && entry.try_lock(true));
        assert!(!entry.try_lock(false), "a writer waits for readers");
        entry.unlock(true);
        entry.unlock(true);
        assert!(entry.try_lock(false));
        assert!(!entry.try_lock(true) && !entry.try_lock(false), "a writer is alone");
        entry.unlock(false);
        assert!(!entry.is_locked());
    }

    #[test]
    fn the_reader_count_never_spills_into_the_writer_bit() {
        let mut entry = Entry::default();
        let admitted = (0..40_000).filter(|_| entry.try_lock(true)).count();
        assert_eq!(admitted, usize::from(WRITER) - 1);
    }
}
