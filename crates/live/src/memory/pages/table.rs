//! Which page has which block; in which order pages were granted; who waits for the end of a hold; and what of the file is
//! written and not used.
//!
//! What must always hold: a block has at most one page that is published; every slot is free or has a block.

use std::collections::{HashMap, VecDeque};

use wire::{BlockSize, BlockTag, Nanos};

/// What is kept about the pages of a node beside the pages themselves.
pub(super) struct Table {
    /// Looked up, never iterated.
    slot_of: HashMap<u64, u32>,
    free: Vec<u32>,
    /// Slots by the time at which they were granted last, the oldest first. An entry whose stamp is not the slot's is void.
    by_age: VecDeque<(u32, u64)>,
    stamps: Box<[u64]>,
    next_stamp: u64,
    /// Slots that an agent was refused because they are held, and until when.
    pub(super) waiting: Vec<(u32, Nanos)>,
    /// Blocks whose part of the file is written, and which have left, the oldest first. An entry whose stamp is not the block's is
    /// void.
    stale: VecDeque<(u64, u64)>,
    left_at: HashMap<u64, u64>,
    /// First block and number of blocks of each range that is mapped.
    pub(super) ranges: Vec<(BlockTag, u64)>,
}

impl Table {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            slot_of: HashMap::new(),
            free: (0..slots).rev().collect(),
            by_age: VecDeque::new(),
            stamps: vec![0; slots as usize].into(),
            next_stamp: 1,
            waiting: Vec::new(),
            stale: VecDeque::new(),
            left_at: HashMap::new(),
            ranges: Vec::new(),
        }
    }

    pub(super) fn slot_of(&self, tag: u64) -> Option<u32> {
        self.slot_of.get(&tag).copied()
    }

    /// A free slot, now for this block.
    pub(super) fn take(&mut self, tag: u64) -> Option<u32> {
        let slot = self.free.pop()?;
        self.assign(tag, slot);
        Some(slot)
    }

    /// The slot is not for this block any more. (Another one may be by now.)
    pub(super) fn leave(&mut self, tag: u64, slot: u32) {
        if self.slot_of.get(&tag) != Some(&slot) {
            return;
        }
        self.slot_of.remove(&tag);
        self.next_stamp += 1;
        self.left_at.insert(tag, self.next_stamp);
        self.stale.push_back((tag, self.next_stamp));
        if self.stale.len() > 4 * self.left_at.len() + 64 {
            let left_at = &self.left_at;
            self.stale.retain(|(tag, stamp)| left_at.get(tag) == Some(stamp));
        }
    }

    /// The slot is for that block now.
    pub(super) fn assign(&mut self, tag: u64, slot: u32) {
        self.left_at.remove(&tag);
        self.slot_of.insert(tag, slot);
    }

    pub(super) fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// The slot is the youngest.
    pub(super) fn touch(&mut self, slot: u32) {
        self.stamps[slot as usize] = self.next_stamp;
        self.by_age.push_back((slot, self.next_stamp));
        self.next_stamp += 1;
        if self.by_age.len() > 4 * self.stamps.len() + 64 {
            let stamps = &self.stamps;
            self.by_age.retain(|(slot, stamp)| stamps[*slot as usize] == *stamp);
        }
    }

    /// Slots that were granted, the oldest first.
    pub(super) fn oldest_first(&mut self) -> impl Iterator<Item = u32> {
        while let Some((slot, stamp)) = self.by_age.front()
            && self.stamps[*slot as usize] != *stamp
        {
            self.by_age.pop_front();
        }
        let stamps = &self.stamps;
        self.by_age.iter().filter(|(slot, stamp)| stamps[*slot as usize] == *stamp).map(|(slot, _)| *slot)
    }

    /// The block that has left longest ago and has not come back, if there are more than so many.
    pub(super) fn forget(&mut self, most: usize) -> Option<u64> {
        while self.left_at.len() > most {
            let (tag, stamp) = self.stale.pop_front()?;
            if self.left_at.get(&tag) == Some(&stamp) {
                self.left_at.remove(&tag);
                return Some(tag);
            }
        }
        None
    }

    /// How many blocks are behind this one in the range that it is mapped in. None: it is not mapped.
    pub(super) fn mapped_behind(&self, tag: BlockTag, block: BlockSize) -> Option<u64> {
        self.ranges.iter().find_map(|(first, blocks)| {
            let index = tag.bits().checked_sub(first.bits())? >> block.shift();
            blocks.checked_sub(index + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_in_the_order_in_which_they_were_granted_last() {
        let mut table = Table::new(3);
        let slots: Vec<u32> = (0..3).map(|tag| table.take(tag << 12).unwrap()).collect();
        assert_eq!(table.take(9 << 12), None);
        for _ in 0..100 {
            slots.iter().for_each(|slot| table.touch(*slot));
        }
        table.touch(slots[0]);
        assert_eq!(table.oldest_first().collect::<Vec<_>>(), [slots[1], slots[2], slots[0]]);
        assert!(table.by_age.len() < 100, "void entries go");
    }

    #[test]
    fn what_has_left_is_forgotten_when_there_is_much_of_it_but_not_what_has_come_back() {
        let mut table = Table::new(8);
        for tag in 1..=4 {
            let slot = table.take(tag << 12).unwrap();
            table.leave(tag << 12, slot);
            table.give_back(slot);
        }
        // It comes again, and leaves last.
        for _ in 0..100 {
            let slot = table.take(1 << 12).unwrap();
            table.leave(1 << 12, slot);
            table.give_back(slot);
        }
        assert_eq!([(); 3].map(|()| table.forget(2)), [Some(2 << 12), Some(3 << 12), None]);
        assert!(table.stale.len() < 100, "void entries go");
    }

    #[test]
    fn a_slot_that_was_for_a_block_does_not_take_away_the_one_that_is() {
        let mut table = Table::new(2);
        let first = table.take(4096).unwrap();
        let second = table.take(4096).unwrap();
        table.leave(4096, first);
        assert_eq!(table.slot_of(4096), Some(second));
        assert_eq!(table.forget(0), None, "its part of the file is in use");
    }
}
