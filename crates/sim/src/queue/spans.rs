//! A level of the wheel above the instants: each slot covers what the whole level below does.
//!
//! It runs inside the event queue. What must always hold: a slot is marked exactly while it holds events, and knows
//! the earliest time among them. That is what lets the queue be looked at without being moved on: a caller may look,
//! and then push something earlier than what he saw.

use wire::Nanos;

use super::marks::{Marks, SLOTS};
use super::rows::Spare;

/// A level.
pub(super) struct Spans<E> {
    /// Where the level's digit is in a time.
    shift: u32,
    /// Made when the first event comes: most runs never use the high levels.
    slots: Vec<Span<E>>,
    marks: Marks,
}

struct Span<E> {
    events: Vec<(Nanos, E)>,
    /// [`Nanos::MAX`] without events.
    earliest: Nanos,
}

impl<E> Spans<E> {
    /// The level whose digit has `shift` bits below it.
    pub(super) const fn new(shift: u32) -> Self {
        Self { shift, slots: Vec::new(), marks: Marks::new() }
    }

    /// Whether there is no event.
    pub(super) const fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Adds an event to its slot.
    #[inline]
    pub(super) fn push(&mut self, spare: &mut Spare<(Nanos, E)>, at: Nanos, event: E) {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || Span { events: Vec::new(), earliest: Nanos::MAX });
        }
        let slot = (at.0 >> self.shift) as usize % SLOTS;
        let span = &mut self.slots[slot];
        if span.events.is_empty() {
            self.marks.set(slot);
            span.events = spare.take();
        }
        span.events.push((at, event));
        span.earliest = span.earliest.min(at);
    }

    /// Empties the first slot: the earliest time among its events, and the events in the order in which they came.
    pub(super) fn take_first(&mut self) -> Option<(Nanos, Vec<(Nanos, E)>)> {
        let slot = self.marks.first()?;
        self.marks.clear(slot);
        let span = &mut self.slots[slot];
        let earliest = core::mem::replace(&mut span.earliest, Nanos::MAX);
        Some((earliest, core::mem::take(&mut span.events)))
    }

    /// The time of the earliest event.
    pub(super) fn earliest(&self) -> Option<Nanos> {
        self.marks.first().map(|slot| self.slots[slot].earliest)
    }

    /// For how many events there is memory, without the rows that are spare.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.slots.iter().map(|slot| slot.events.capacity()).sum()
    }
}
