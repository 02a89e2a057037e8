//! A level of the wheel above the instants: each slot covers what the whole level below does.
//!
//! It runs inside the event queue. What must always hold: a slot is marked exactly while it holds events, and
//! knows the earliest time among them. That is what lets the queue be looked at without being moved on: a
//! caller may look, and then push something earlier than what he saw.

use wire::Nanos;

use super::marks::{Marks, SLOTS};
use super::rows::{Rows, Slot};

/// A level.
pub(super) struct Spans<E> {
    /// Where the level's digit is in a time.
    shift: u32,
    /// Made when the first event comes: most runs never use the high levels.
    spans: Vec<Span<E>>,
    marks: Marks,
}

struct Span<E> {
    events: Slot<(Nanos, E)>,
    /// [`Nanos::MAX`] without events.
    earliest: Nanos,
}

impl<E> Span<E> {
    const EMPTY: Self = Self { events: Slot::EMPTY, earliest: Nanos::MAX };
}

impl<E> Spans<E> {
    /// The level whose digit has `shift` bits below it.
    pub(super) const fn new(shift: u32) -> Self {
        Self { shift, spans: Vec::new(), marks: Marks::new() }
    }

    /// Whether there is no event.
    pub(super) const fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Adds an event to its slot.
    #[inline]
    pub(super) fn push(&mut self, rows: &mut Rows<(Nanos, E)>, at: Nanos, event: E) {
        if self.spans.is_empty() {
            self.spans.resize_with(SLOTS, || Span::EMPTY);
        }
        let index = (at.0 >> self.shift) as usize % SLOTS;
        let span = &mut self.spans[index];
        rows.add(&mut span.events, (at, event));
        span.earliest = span.earliest.min(at);
        self.marks.set(index);
    }

    /// Empties the first slot: the earliest time among its events, and the events in the order in which they
    /// came.
    pub(super) fn take_first(&mut self) -> Option<(Nanos, Slot<(Nanos, E)>)> {
        let index = self.marks.first()?;
        self.marks.clear(index);
        let span = core::mem::replace(&mut self.spans[index], Span::EMPTY);
        Some((span.earliest, span.events))
    }

    /// The time of the earliest event.
    pub(super) fn earliest(&self) -> Option<Nanos> {
        self.marks.first().map(|index| self.spans[index].earliest)
    }

    /// For how many events there is memory in the slots' last rows.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.spans.iter().map(|span| span.events.room()).sum()
    }
}
