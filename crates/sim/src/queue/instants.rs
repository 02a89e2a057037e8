//! The lowest level of the wheel: one slot for each nanosecond.
//!
//! It runs inside the event queue. What must always hold: all events of a slot are for the same instant (so their time
//! need not be kept), and a slot is marked exactly while it holds events.

use std::collections::VecDeque;

use wire::Nanos;

use super::marks::{Marks, SLOTS};
use super::rows::Spare;

/// The instants of the span that now lies in.
pub(super) struct Instants<E> {
    slots: Box<[Vec<E>]>,
    marks: Marks,
    spare: Spare<E>,
    /// How many events the last slot that was taken held.
    taken: usize,
}

impl<E> Instants<E> {
    /// No events.
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            marks: Marks::new(),
            spare: Spare::new(),
            taken: 0,
        }
    }

    /// Whether there is no event.
    pub(super) const fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Adds an event to its instant.
    #[inline]
    pub(super) fn push(&mut self, at: Nanos, event: E) {
        let slot = at.0 as usize % SLOTS;
        let row = &mut self.slots[slot];
        if row.is_empty() {
            self.marks.set(slot);
            *row = self.spare.take();
        }
        row.push(event);
    }

    /// Takes the events of the earliest instant in `now`'s span, in exchange for a row that has become empty. Returns
    /// the instant.
    #[inline]
    pub(super) fn take_first(&mut self, now: Nanos, row: &mut VecDeque<E>) -> Option<Nanos> {
        let slot = self.marks.first()?;
        self.marks.clear(slot);
        let events = core::mem::take(&mut self.slots[slot]);
        let used = core::mem::replace(&mut self.taken, events.len());
        // From a row to a queue and back: neither copies.
        let empty = core::mem::replace(row, events.into());
        self.spare.give_back(empty.into(), used);
        Some(instant(now, slot))
    }

    /// The earliest instant in `now`'s span that has an event.
    pub(super) fn earliest(&self, now: Nanos) -> Option<Nanos> {
        self.marks.first().map(|slot| instant(now, slot))
    }

    /// For how many events there is memory.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.slots.iter().map(Vec::capacity).sum::<usize>() + self.spare.room()
    }
}

const fn instant(now: Nanos, slot: usize) -> Nanos {
    Nanos(now.0 / SLOTS as u64 * SLOTS as u64 + slot as u64)
}
