//! The order of everything that happens in virtual time: a hierarchical timing wheel.
//!
//! It runs under the simulated rack's event loop, which takes one event after the other and pushes what follows
//! from it.
//!
//! What must always hold: events come out by time, and those of one instant in the order in which they were
//! pushed, whatever way they took through the wheel. Nothing is pushed into the past.
//!
//! # How it works
//! *Now* is the time of the last event popped. The highest digit in which an event's time differs from now
//! decides its level. The instants have one slot for every nanosecond of the span that now lies in, and a slot
//! of a level above covers as much as the whole level below. So every event of a level is earlier than every
//! event of the level above, and the levels together cover all 64 bits: far events need no second structure.
//!
//! When there are no more events in the instants, the earliest slot of the lowest level in use is dealt out to
//! the levels below, from its first event to its last. Before that, no event of this slot's span was on a level
//! below, since now lay outside of the span; after that, none goes to the slot any more. So the order of
//! pushing survives.
//!
//! # Why it is fast
//! A slot is a list of short rows of events, written and read from front to back, and the row that was emptied
//! last is the first to be filled again. So a million pending events cost few misses of cache and TLB, and a
//! hundred cost none.

mod instants;
mod marks;
mod rows;
mod spans;

use core::fmt;
use std::collections::VecDeque;

use wire::Nanos;

use instants::Instants;
use marks::{DIGIT, SLOTS};
use rows::Rows;
use spans::Spans;

/// How many levels there are above the instants: enough for all digits of a time.
const UPPER: usize = u64::BITS.div_ceil(DIGIT) as usize - 1;

/// Events waiting for their time.
pub struct EventQueue<E> {
    /// The time of the last event popped.
    now: Nanos,
    pending: usize,
    /// The next events of the instant that is now; there may be more in its slot.
    current: VecDeque<E>,
    instants: Instants<E>,
    upper: [Spans<E>; UPPER],
    /// The memory of all upper levels.
    rows: Rows<(Nanos, E)>,
}

impl<E> EventQueue<E> {
    /// A queue without events. Its memory follows the largest number of events that are pending at once.
    pub fn new() -> Self {
        Self {
            now: Nanos::ZERO,
            pending: 0,
            current: VecDeque::new(),
            instants: Instants::new(),
            upper: core::array::from_fn(|level| Spans::new((level as u32 + 1) * DIGIT)),
            rows: Rows::new(),
        }
    }

    /// Lets `event` happen at `at`, after everything that was pushed for this instant before.
    ///
    /// # Panics
    /// If `at` is earlier than the last event popped: an effect would come before its cause.
    #[inline]
    pub fn push(&mut self, at: Nanos, event: E) {
        assert!(at >= self.now, "an event for {} ns was pushed at {} ns", at.0, self.now.0);
        self.place(at, event);
        self.pending += 1;
    }

    /// The next event and its time, which becomes now.
    #[inline]
    pub fn pop(&mut self) -> Option<(Nanos, E)> {
        if self.current.is_empty() {
            self.turn()?;
        }
        let event = self.current.pop_front()?;
        self.pending -= 1;
        Some((self.now, event))
    }

    /// The time of the next event.
    pub fn peek_time(&self) -> Option<Nanos> {
        if !self.current.is_empty() {
            return Some(self.now);
        }
        self.instants.earliest(self.now).or_else(|| self.upper.iter().find_map(Spans::earliest))
    }

    /// How many events are pending.
    pub const fn len(&self) -> usize {
        self.pending
    }

    /// Whether none is pending.
    pub const fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Puts an event where its time and now want it.
    #[inline]
    fn place(&mut self, at: Nanos, event: E) {
        let differing = at.0 ^ self.now.0;
        if differing < SLOTS as u64 {
            self.instants.push(at, event);
        } else {
            let level = (differing.ilog2() / DIGIT) as usize - 1;
            self.upper[level].push(&mut self.rows, at, event);
        }
    }

    /// Moves now on to the next instant with events, and takes them out.
    fn turn(&mut self) -> Option<()> {
        if self.instants.is_empty() {
            self.deal()?;
        }
        self.now = self.instants.take_first(self.now, &mut self.current)?;
        Some(())
    }

    /// There are no more instants with events: deals the earliest slot of the lowest level in use out to the
    /// levels below. Now becomes the time of the earliest event, which is about to be popped.
    #[cold]
    fn deal(&mut self) -> Option<()> {
        let source = self.upper.iter_mut().find(|level| !level.is_empty())?;
        let (earliest, mut slot) = source.take_first()?;
        self.now = earliest;
        while !slot.is_empty() {
            let mut row = self.rows.take(&mut slot);
            for (at, event) in row.drain(..) {
                self.place(at, event);
            }
            self.rows.give_back(row);
        }
        Some(())
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for EventQueue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventQueue")
            .field("now", &self.now)
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<E> EventQueue<E> {
        /// For how many events there is memory, used or not.
        fn room(&self) -> usize {
            let upper: usize = self.upper.iter().map(Spans::room).sum();
            self.current.capacity() + self.instants.room() + upper + self.rows.room()
        }
    }

    /// Pops and pushes so many times; the next event is pushed `ahead` of the last popped.
    fn turn_over(queue: &mut EventQueue<u64>, pairs: u64, ahead: impl Fn(u64) -> u64) {
        for k in 0..pairs {
            let (now, event) = queue.pop().expect("as many are pushed as are popped");
            queue.push(now + Nanos(ahead(k)), event);
        }
    }

    #[test]
    fn memory_does_not_grow_while_as_many_are_pushed_as_are_popped() {
        let mut queue = EventQueue::new();
        (0..1_000).for_each(|k| queue.push(Nanos(k * 7), k));
        let ahead = |k: u64| k * 7_919 % if k.is_multiple_of(10) { 1_000_000 } else { 2_000 };
        turn_over(&mut queue, 200_000, ahead);
        let before = queue.room();
        turn_over(&mut queue, 2_000_000, ahead);
        assert!(queue.room() <= before * 2, "memory for {} events, before: {before}", queue.room());
    }

    #[test]
    fn memory_is_for_as_many_events_as_were_pending_at_once_however_they_were_spread() {
        const CROWD: u64 = 20_000;
        let mut queue = EventQueue::new();
        // Every instant has an event early, and a crowd just before it is due.
        (0..100).for_each(|instant| queue.push(Nanos(instant), 0));
        let mut most = 0;
        for instant in 0..100 {
            (0..CROWD).for_each(|k| queue.push(Nanos(instant), k));
            most = most.max(queue.len());
            while queue.peek_time() == Some(Nanos(instant)) {
                queue.pop();
            }
        }
        assert!(queue.is_empty());
        assert!(queue.room() < most * 2, "memory for {} events, {most} were pending at once", queue.room());
    }
}
