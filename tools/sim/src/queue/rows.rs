//! The memory of slots: short rows, which are handed from slot to slot.
//!
//! It runs inside the event queue. What must always hold: a row that no slot uses is empty, and is used again
//! before a new one is made. No row has capacity for more than [`ROW`] events. So there is memory for little more
//! events than were ever pending at once.

/// How many events a row has capacity for at most. Long enough to be read at full speed, short enough that the rows
/// that a busy rack writes to, one for each instant, stay in the cache.
const ROW: usize = 64;

/// No row.
const NONE: u32 = u32::MAX;

/// Events in the order in which they were added: rows that are full, and one that is being filled.
pub(super) struct Slot<T> {
    last: Vec<T>,
    first_full: u32,
    last_full: u32,
}

impl<T> Slot<T> {
    /// No events.
    pub(super) const EMPTY: Self = Self { last: Vec::new(), first_full: NONE, last_full: NONE };

    /// Whether there is no event.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        // A row is called full when there is one more event: after it there is always another.
        self.last.is_empty()
    }
}

/// The full rows of all slots, and the rows that no slot uses.
pub(super) struct Rows<T> {
    spare: Vec<Vec<T>>,
    full: Vec<Full<T>>,
    /// The first entry of `full` without a row.
    free: u32,
}

struct Full<T> {
    row: Vec<T>,
    /// The full row that follows in the slot; or, without a row, the next entry without one.
    next: u32,
}

impl<T> Rows<T> {
    /// None.
    pub(super) const fn new() -> Self {
        Self { spare: Vec::new(), full: Vec::new(), free: NONE }
    }

    /// Adds an event at the end of a slot.
    #[inline]
    pub(super) fn add(&mut self, slot: &mut Slot<T>, event: T) {
        if slot.last.len() == slot.last.capacity() {
            self.make_space(slot);
        }
        slot.last.push(event);
    }

    /// Takes the first row out of a slot; an empty one out of an empty slot.
    #[inline]
    pub(super) fn take(&mut self, slot: &mut Slot<T>) -> Vec<T> {
        if slot.first_full == NONE {
            return core::mem::take(&mut slot.last);
        }
        self.take_full(slot)
    }

    /// A row that was taken out is empty. It is the first to be used again, since it is still in the cache.
    #[inline]
    pub(super) fn give_back(&mut self, row: Vec<T>) {
        debug_assert!(row.is_empty(), "a row with events was given back");
        if row.capacity() > 0 {
            self.spare.push(row);
        }
    }

    #[inline]
    fn make_space(&mut self, slot: &mut Slot<T>) {
        if slot.last.is_empty() {
            slot.last = self.spare.pop().unwrap_or_default();
        }
        // A new row starts small: most instants of most runs have one event.
        let room = slot.last.capacity();
        if slot.last.len() < room {
            return;
        }
        if room < ROW {
            slot.last.reserve_exact((2 * room).clamp(4, ROW) - room);
        } else {
            self.put_full(slot);
        }
    }

    fn put_full(&mut self, slot: &mut Slot<T>) {
        let empty = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(ROW));
        let full = Full { row: core::mem::replace(&mut slot.last, empty), next: NONE };
        let index = if self.free == NONE {
            self.full.push(full);
            u32::try_from(self.full.len() - 1).expect("fewer than 2^32 rows")
        } else {
            let index = self.free;
            let entry = &mut self.full[index as usize];
            self.free = entry.next;
            *entry = full;
            index
        };
        if slot.first_full == NONE {
            slot.first_full = index;
        } else {
            self.full[slot.last_full as usize].next = index;
        }
        slot.last_full = index;
    }

    fn take_full(&mut self, slot: &mut Slot<T>) -> Vec<T> {
        let index = slot.first_full;
        let entry = &mut self.full[index as usize];
        slot.first_full = core::mem::replace(&mut entry.next, self.free);
        self.free = index;
        core::mem::take(&mut entry.row)
    }

    /// For how many events there is memory outside of the slots' last rows.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        let full: usize = self.full.iter().map(|full| full.row.capacity()).sum();
        full + self.spare.iter().map(Vec::capacity).sum::<usize>()
    }
}

#[cfg(test)]
impl<T> Slot<T> {
    /// For how many events there is memory in the last row.
    pub(super) fn room(&self) -> usize {
        self.last.capacity()
    }
}
