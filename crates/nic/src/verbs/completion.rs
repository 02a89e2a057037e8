//! Completion queues: where ended work waits until the application looks.
//!
//! What must always hold: a completion finds capacity. So capacity is taken when work is posted, and given back when its
//! completion is polled or turns out not to be wanted.

use alloc::collections::VecDeque;

use super::work::Completion;

/// A completion queue of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CqNumber(pub u32);

/// Ended work, the oldest first.
#[derive(Clone, Debug)]
pub struct CompletionQueue {
    ended: VecDeque<Completion>,
    /// Posted work that may end here, and ended work that was not polled yet.
    taken: usize,
    capacity: usize,
    armed: bool,
}

impl CompletionQueue {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { ended: VecDeque::with_capacity(capacity), taken: 0, capacity, armed: false }
    }

    /// Takes room for one; false if there is none.
    pub(crate) fn reserve(&mut self) -> bool {
        let room = self.taken < self.capacity;
        self.taken += usize::from(room);
        room
    }

    /// Gives capacity for so many back.
    pub(crate) fn release(&mut self, count: usize) {
        debug_assert!(count <= self.taken - self.ended.len(), "room is given back once");
        self.taken -= count;
    }

    /// Work has ended; true if somebody wants to be told, once.
    pub(crate) fn push(&mut self, completion: Completion) -> bool {
        assert!(self.ended.len() < self.taken, "room was taken when it was posted");
        self.ended.push_back(completion);
        core::mem::take(&mut self.armed)
    }

    pub(crate) fn poll(&mut self) -> Option<Completion> {
        let completion = self.ended.pop_front()?;
        self.taken -= 1;
        Some(completion)
    }

    /// Asks to be told of the next completion; true if one is there already.
    pub(crate) fn arm(&mut self) -> bool {
        self.armed = self.ended.is_empty();
        !self.armed
    }

    /// Completions that wait to be polled.
    pub fn len(&self) -> usize {
        self.ended.len()
    }

    /// True if none wait.
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }
}
