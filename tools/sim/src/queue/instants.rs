//! The lowest level of the wheel: one slot for each nanosecond.
//!
//! It runs inside the event queue. What must always hold: all events of a slot are for the same instant (so
//! their time need not be kept), and a slot is marked exactly while it holds events.

use std::collections::VecDeque;

use wire::Nanos;

use super::marks::{Marks, SLOTS};
use super::rows::{Rows, Slot};

/// The instants of the span that now lies in.
pub(super) struct Instants<E> {
    slots: Box<[Slot<E>]>,
    marks: Marks,
    rows: Rows<E>,
}

impl<E> Instants<E> {
    /// No events.
    pub(super) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| Slot::EMPTY).collect(), marks: Marks::new(), rows: Rows::new() }
    }

    /// Whether there is no event.
    pub(super) const fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Adds an event to its instant.
    #[inline]
    pub(super) fn push(&mut self, at: Nanos, event: E) {
        let index = at.0 as usize % SLOTS;
        self.rows.add(&mut self.slots[index], event);
        self.marks.set(index);
    }

    /// Takes the first events of the earliest instant in `now`'s span, in exchange for a row that has become
    /// empty. Returns the instant, of which there may be more.
    #[inline]
    pub(super) fn take_first(&mut self, now: Nanos, row: &mut VecDeque<E>) -> Option<Nanos> {
        let index = self.marks.first()?;
        let slot = &mut self.slots[index];
        let events = self.rows.take(slot);
        if slot.is_empty() {
            self.marks.clear(index);
        }
        // From a row to a queue and back: neither copies.
        let empty = core::mem::replace(row, events.into());
        self.rows.give_back(empty.into());
        Some(instant(now, index))
    }

    /// The earliest instant in `now`'s span that has an event.
    pub(super) fn earliest(&self, now: Nanos) -> Option<Nanos> {
        self.marks.first().map(|index| instant(now, index))
    }

    /// For how many events there is memory.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.slots.iter().map(Slot::room).sum::<usize>() + self.rows.room()
    }
}

const fn instant(now: Nanos, index: usize) -> Nanos {
    Nanos(now.0 / SLOTS as u64 * SLOTS as u64 + index as u64)
}
