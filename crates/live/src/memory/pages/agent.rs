//! What the machines do with a page, one at a time, while the application's accesses go on.
//!
//! As [with a frame of the cache](super::super::agent), a word says what the page is; beside that the processor's right
//! follows, under the rules in the module's head.

use std::iter;
use std::sync::PoisonError;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};

use node::{Access, FrameId, Pinned, Reservation};
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
use wire::{BlockTag, Nanos};

use super::table::Table;
use super::{Pages, Right};
use crate::memory::frame_word::FrameMeta;

/// Pages that have left and keep their memory: an eighth of the pages, and some.
const fn most_stale(slots: usize) -> usize {
    64 + slots / 8
}

impl Pages {
    /// True if this block belongs here: it lies in a range that is mapped.
    pub(in crate::memory) fn covers(&self, tag: BlockTag) -> bool {
        self.table().mapped_behind(tag, self.block).is_some()
    }

    pub(in crate::memory) fn meta(&self, slot: usize) -> &FrameMeta {
        &self.slots[slot].meta
    }

    pub(in crate::memory) fn words(&self, slot: usize) -> &[AtomicU64] {
        self.views.words(self.offset(slot), self.block.len())
    }

    pub(in crate::memory) fn lookup(&self, tag: BlockTag) -> Option<(FrameId, Access)> {
        let slot = self.table().slot_of(tag.bits())?;
        Some((self.frame(slot), self.slots[slot as usize].meta.access()?))
    }

    pub(in crate::memory) fn tag_of(&self, slot: usize) -> Option<BlockTag> {
        self.slots[slot].meta.access().map(|_| self.tag(slot))
    }

    pub(in crate::memory) fn published(&self, mut each: impl FnMut(FrameId, BlockTag, Access)) {
        for (index, slot) in self.slots.iter().enumerate() {
            if let Some(access) = slot.meta.access() {
                each(self.frame(index as u32), self.tag(index), access);
            }
        }
    }

    pub(in crate::memory) fn reserve(
        &self,
        tag: BlockTag,
        is_victim: impl Fn(FrameId) -> bool,
    ) -> Reservation {
        let (mut table, now) = (self.table(), self.now());
        if let Some(slot) = table.take(tag.bits()) {
            let it = &self.slots[slot as usize];
            assert!(it.meta.reserve(), "{:?} was free", self.frame(slot));
            it.tag.store(tag.bits(), Relaxed);
            return Reservation::Reserved(self.frame(slot));
        }
        let oldest = table.oldest_first().find_map(|slot| {
            let (it, frame) = (&self.slots[slot as usize], self.frame(slot));
            let access = it.meta.access()?;
            let goes = !it.meta.is_pinned() && !it.hold.holds(now) && !is_victim(frame);
            goes.then(|| Reservation::Evict { frame, tag: self.tag(slot as usize), access })
        });
        oldest.unwrap_or(Reservation::Busy)
    }

    pub(in crate::memory) fn assign(&self, slot: usize, tag: BlockTag) {
        let it = &self.slots[slot];
        it.meta.assert_reserved();
        let former = it.tag.swap(tag.bits(), Relaxed);
        if former != tag.bits() {
            let mut table = self.table();
            table.leave(former, slot as u32);
            table.assign(tag.bits(), slot as u32);
        }
    }

    pub(in crate::memory) fn publish(&self, slot: usize, tag: BlockTag, access: Access, pin: bool) {
        let it = &self.slots[slot];
        assert_eq!(self.tag(slot), tag, "a page is for one block from when it is reserved");
        assert_eq!(it.right(), Right::None, "{tag:?} was reserved, and nobody has seen it since");
        it.meta.publish(access, pin);
        self.table().touch(slot as u32);
    }

    pub(in crate::memory) fn pin(&self, slot: usize) -> Result<(), Pinned> {
        self.slots[slot].meta.pin()?;
        self.stop_writers(slot);
        self.table().touch(slot as u32);
        Ok(())
    }

    pub(in crate::memory) fn upgrade(&self, slot: usize) -> Result<(), Pinned> {
        self.slots[slot].meta.upgrade()?;
        self.table().touch(slot as u32);
        Ok(())
    }

    pub(in crate::memory) fn downgrade(&self, slot: usize) -> Result<(), Pinned> {
        let it = &self.slots[slot];
        if it.meta.access() == Some(Access::Modified) {
            self.is_free(slot)?;
            it.meta.downgrade()?;
            self.stop_writers(slot);
            it.hold.end(|| self.waited_for(slot));
        }
        Ok(())
    }

    pub(in crate::memory) fn withdraw(&self, slot: usize) -> Result<(), Pinned> {
        self.is_free(slot)?;
        self.slots[slot].meta.withdraw()?;
        self.take_away(slot);
        self.slots[slot].hold.end(|| self.waited_for(slot));
        Ok(())
    }

    pub(in crate::memory) fn release(&self, slot: usize) {
        let mut table = self.table();
        self.slots[slot].meta.release();
        table.leave(self.tag(slot).bits(), slot as u32);
        table.give_back(slot as u32);
        // Memory goes back when the page has not come again for a while: it comes and goes when nodes share it.
        if let Some(tag) = table.forget(most_stale(self.slots.len())) {
            self.views.forget(self.offset_of_block(BlockTag::from_bits(tag)), self.block.len());
        }
    }

    /// Whoever may write is taken to have written.
    pub(in crate::memory) fn writes(&self, slot: usize) -> u64 {
        let it = &self.slots[slot];
        if it.right() == Right::Write {
            it.meta.count_write();
        }
        it.meta.writes()
    }

    /// After an agent has read the pinned page: the application may write again where it could.
    pub(in crate::memory) fn let_write(&self, slot: usize) {
        let (it, suspended) = (&self.slots[slot], self.changing());
        if !*suspended
            && it.right() == Right::Read
            && it.meta.access() == Some(Access::Modified)
            && self.views.protect(self.offset(slot), self.block.len(), false)
        {
            it.set_right(Right::Write);
        }
    }

    /// Takes the application's right away, whatever the node may do with the block.
    pub(super) fn take_away(&self, slot: usize) {
        let (it, _changing) = (&self.slots[slot], self.changing());
        if it.right() != Right::None {
            self.views.withdraw(self.offset(slot), self.block.len());
            it.set_right(Right::None);
        }
    }

    /// Closes a range of the application's view.
    pub(super) fn close(&self, offset: usize, len: usize) {
        self.views.close(offset, len);
        self.forget_rights(offset, len);
    }

    /// Whatever was let in there is not any more.
    pub(super) fn forget_rights(&self, offset: usize, len: usize) {
        for index in 0..self.slots.len() {
            if (offset..offset + len).contains(&self.offset(index)) {
                self.slots[index].set_right(Right::None);
            }
        }
    }

    /// The application may not write any more. Whoever asks for pages one behind the other asks for the next ones soon: they are
    /// protected by the same call, which takes much of the time that an agent has a page for. A right less is always allowed.
    fn stop_writers(&self, slot: usize) {
        let (first, behind) = (self.tag(slot), self.expected_behind(slot));
        let (_changing, now) = (self.changing(), self.now());
        if self.slots[slot].right() != Right::Write {
            return;
        }
        let is_idle = |(index, slot): &(u64, usize)| {
            let it = &self.slots[*slot];
            let is_used = it.is_kept.load(Acquire) || it.hold.holds(now);
            let tag = first.bits() + (index << self.block.shift());
            it.right() == Right::Write && it.tag.load(Relaxed) == tag && !is_used
        };
        let behind = (1..).zip(behind).take_while(is_idle).map(|(_, slot)| slot);
        let stopped: Vec<usize> = iter::once(slot).chain(behind).collect();
        self.views.protect(self.offset(slot), stopped.len() * self.block.len(), true);
        for slot in stopped {
            self.slots[slot].meta.count_write();
            self.slots[slot].set_right(Right::Read);
        }
    }

    /// Where the blocks are, of the same range, that the writers are soon to be stopped of, too.
    fn expected_behind(&self, slot: usize) -> Vec<usize> {
        if self.slots[slot].right() != Right::Write {
            return Vec::new();
        }
        let (first, table) = (self.tag(slot), self.table());
        let ahead =
            self.stopped.lock().unwrap_or_else(PoisonError::into_inner).ahead(self.block, first.addr());
        let mapped = table.mapped_behind(first, self.block).unwrap_or(0);
        let slot_of = |index| table.slot_of(first.bits() + (index << self.block.shift()));
        (1..=mapped.min(ahead as u64)).map_while(slot_of).map(|slot| slot as usize).collect()
    }

    /// What is in the word that the page was brought for.
    fn waited_for(&self, slot: usize) -> u64 {
        let word = self.slots[slot].word.load(Relaxed) as usize;
        self.words(slot)[word % self.block.words()].load(Relaxed)
    }

    /// Refuses an agent as long as the page is held, and remembers that it waits.
    fn is_free(&self, slot: usize) -> Result<(), Pinned> {
        let hold = &self.slots[slot].hold;
        if !hold.holds(self.now()) {
            return Ok(());
        }
        hold.refuse();
        let waits = (slot as u32, hold.until());
        let mut table = self.table();
        if !table.waiting.contains(&waits) {
            table.waiting.push(waits);
            self.set_deadline(&table);
        }
        Err(Pinned)
    }

    /// When [`Pages::due`] has something, by the node's clock.
    pub fn deadline(&self) -> Nanos {
        Nanos(self.deadline.load(Relaxed))
    }

    /// Pages whose hold is over by now, and for which an agent waits: to be told as the end of a pin.
    pub fn due(&self, now: Nanos) -> Vec<FrameId> {
        let mut table = self.table();
        let is_over = |(_, until): &mut (u32, Nanos)| *until <= now;
        let due = table.waiting.extract_if(.., is_over).map(|(slot, _)| self.frame(slot)).collect();
        self.set_deadline(&table);
        due
    }

    fn set_deadline(&self, table: &Table) {
        let next = table.waiting.iter().map(|(_, until)| until.0).min().unwrap_or(u64::MAX);
        let before = self.deadline.swap(next, Relaxed);
        if next != before && next != u64::MAX {
            self.ring_in(Nanos(next).saturating_sub(self.now()));
        }
    }

    /// Has the thread look around that waits for faults.
    pub fn ring(&self) {
        self.ring_in(Nanos::ZERO);
    }

    fn ring_in(&self, left: Nanos) {
        // Zero would stop it.
        let Nanos(left) = left.max(Nanos(1));
        let [tv_sec, tv_nsec] = [left / 1_000_000_000, left % 1_000_000_000].map(u64::cast_signed);
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Itimerspec { it_interval: never, it_value: Timespec { tv_sec, tv_nsec } };
        timerfd_settime(&self.alarm, TimerfdTimerFlags::empty(), &once)
            .expect("a timer takes any time that is not negative");
    }
}
