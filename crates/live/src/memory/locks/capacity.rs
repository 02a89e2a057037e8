//! Which slot a lock gets, and which copy has to go for it. Only a node's machine comes here, under the lock of its actor.

use std::sync::atomic::Ordering::{Relaxed, Release};

use node::locks::Full;
use sorted::Map;
use wire::{GlobalAddr, Mode};

use super::arena::Arena;
use super::{LockCopies, Slot, WAYS, number};

/// Slots looked at for one that may go, where a set has none.
const SWEEP: usize = 1 << 10;

/// What is free, and what is beyond.
pub(super) struct Capacity {
    arena: Arena,
    /// Bytes of copies.
    in_use: u64,
    /// Locks for which there was no slot in their set, and their slots.
    beyond: Map<GlobalAddr, u32>,
    /// Slots beyond the sets that are free again.
    spare: Vec<u32>,
    /// Slots beyond the sets that there are.
    made: u32,
    /// Where the next sweep begins.
    hand: usize,
}

impl Capacity {
    pub(super) fn new() -> Self {
        Self { arena: Arena::new(), in_use: 0, beyond: Map::new(), spare: Vec::new(), made: 0, hand: 0 }
    }

    pub(super) fn beyond(&self, lock: GlobalAddr) -> Option<u32> {
        self.beyond.get(&lock).copied()
    }

    /// A slot beyond the sets that nobody has.
    pub(super) fn slot_beyond(&mut self, sets: usize) -> u32 {
        self.spare.pop().unwrap_or_else(|| {
            self.made += 1;
            self.slots_in_use(sets) - 1
        })
    }

    /// It is free again.
    pub(super) fn spare(&mut self, number: u32) {
        self.spare.push(number);
    }

    pub(super) fn slots_in_use(&self, sets: usize) -> u32 {
        number(sets * WAYS) + self.made
    }
}

fn bytes(len: u32) -> u64 {
    if len == 0 { 0 } else { Arena::size(words(len)) as u64 * 8 }
}

/// Whole words of a region of this length.
fn words(len: u32) -> usize {
    (wire::region_bytes(len) as usize).div_ceil(8)
}

impl LockCopies {
    /// A slot for a lock, closed and empty. With `must`, or where nothing can go, beyond what was planned: a thread may hold
    /// any number of locks at once, and none of them can go.
    pub(super) fn reserve(&self, lock: GlobalAddr, len: u32, must: bool) -> Result<Slot<'_>, Full> {
        let room = &mut *self.room();
        let mut free = self.tagged(lock, 0);
        if !must && (free.is_none() || room.in_use + bytes(len) > self.budget) {
            let first = number(self.set_of(lock) * WAYS);
            let in_set = (first..first + WAYS as u32).filter_map(|slot| self.idle(slot)).min();
            let victim = in_set.or_else(|| free.and_then(|_| self.sweep(room)));
            if let Some((_, victim)) = victim {
                return Err(Full::Evict(victim));
            }
        }
        let number = *free.get_or_insert_with(|| {
            let slot = room.slot_beyond(self.sets);
            room.beyond.insert(lock, slot);
            self.beyond.store(room.beyond.len() as u64, Relaxed);
            slot
        });
        let slot = self.slot(number);
        self.give_room(room, number, len);
        slot.used().store(self.tick.fetch_add(1, Relaxed) + 1, Relaxed);
        slot.tag().store(lock.bits(), Release);
        Ok(slot)
    }

    /// The lock's slot is free again.
    pub(super) fn release(&self, lock: GlobalAddr, slot: Slot<'_>) {
        let users = slot.gate().close();
        let ends = slot.ending().swap(0, Relaxed) == 1;
        assert!(
            users.readers == 0 && users.writer == ends,
            "a copy with {users:?} inside is given back: {lock}"
        );
        if ends {
            // Whoever ended the lock was inside, and has nothing of it any more.
            let _ = slot.gate().leave(Mode::Write);
        }
        slot.tag().store(0, Relaxed);
        let room = &mut *self.room();
        self.take_room(room, slot);
        if self.beyond.load(Relaxed) > 0 && room.beyond.remove(&lock).is_some() {
            room.spare.push(slot.number());
            self.beyond.store(room.beyond.len() as u64, Relaxed);
        }
    }

    /// A new generation of a slot begins, closed and empty, with room for so many bytes.
    pub(super) fn give_room(&self, room: &mut Capacity, number: u32, len: u32) {
        let slot = self.slot(number);
        let at = if len == 0 { 0 } else { room.arena.take(words(len), |number| self.data.segment(number)) };
        room.in_use += bytes(len);
        slot.gate().renew();
        slot.at().store(at as u64, Relaxed);
        slot.len().store(u64::from(len), Relaxed);
        slot.numbered().store(u64::from(number), Relaxed);
    }

    /// What a slot had for its bytes is free again.
    pub(super) fn take_room(&self, room: &mut Capacity, slot: Slot<'_>) {
        let len = u32::try_from(slot.len().load(Relaxed)).expect("a length has 32 bits");
        if len > 0 {
            room.arena.give(slot.at().load(Relaxed) as usize, words(len));
        }
        room.in_use -= bytes(len);
    }

    /// The slot that a lock has.
    ///
    /// # Panics
    /// If it has none.
    pub(super) fn slot_of(&self, lock: GlobalAddr) -> Slot<'_> {
        let found = self.tagged(lock, lock.bits()).or_else(|| self.room().beyond(lock));
        self.slot(found.unwrap_or_else(|| panic!("{lock} has no copy here")))
    }

    /// A copy that may go, and when it was used last.
    fn idle(&self, slot: u32) -> Option<(u64, GlobalAddr)> {
        let slot = self.slot(slot);
        let lock = slot.tag().load(Relaxed);
        let idle = lock != 0 && !slot.gate().is_closed() && slot.gate().users().is_none();
        idle.then(|| (slot.used().load(Relaxed), GlobalAddr::from_bits(lock)))
    }

    /// Some copy with data that may go, in other sets.
    fn sweep(&self, room: &mut Capacity) -> Option<(u64, GlobalAddr)> {
        let slots = self.sets * WAYS;
        for _ in 0..SWEEP.min(slots) {
            let slot = u32::try_from(room.hand).expect("slots have 32-bit numbers");
            room.hand = (room.hand + 1) % slots;
            if let Some(victim) = self.idle(slot).filter(|_| self.slot(slot).len().load(Relaxed) > 0) {
                return Some(victim);
            }
        }
        None
    }

    /// Bytes of copies, and copies beyond their sets: for tests.
    pub fn in_use(&self) -> (u64, u64) {
        (self.room().in_use, self.beyond.load(Relaxed))
    }
}
