//! Reader-writer locks of applications, kept where the block's home is.
//!
//! Whoever cannot have a lock waits in a queue, readers that stand together enter together, and nobody overtakes.
//! What must always hold: one writer or any number of readers, and every lock that is released goes to the next.

use std::collections::{BTreeMap, VecDeque};

use sim::system::ThreadId;
use wire::BlockTag;

/// What asking for a lock came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// It is held.
    Granted,
    /// The thread stands in the queue.
    Queued,
    /// It is taken, and the thread did not want to wait.
    Refused,
}

#[derive(Debug, Default)]
struct Lock {
    writer: bool,
    readers: u32,
    queue: VecDeque<(ThreadId, bool)>,
}

impl Lock {
    fn admits(&self, write: bool) -> bool {
        !self.writer && (!write || self.readers == 0)
    }

    fn enter(&mut self, write: bool) {
        if write {
            self.writer = true;
        } else {
            self.readers += 1;
        }
    }
}

/// The locks of one home.
#[derive(Debug, Default)]
pub struct LockTable {
    locks: BTreeMap<BlockTag, Lock>,
}

impl LockTable {
    /// A thread wants a lock; with `once`, now or not at all.
    pub fn ask(&mut self, tag: BlockTag, thread: ThreadId, write: bool, once: bool) -> Asked {
        let lock = self.locks.entry(tag).or_default();
        if lock.queue.is_empty() && lock.admits(write) {
            lock.enter(write);
            return Asked::Granted;
        }
        if once {
            return Asked::Refused;
        }
        lock.queue.push_back((thread, write));
        Asked::Queued
    }

    /// A lock is released; returns who holds it now that had to wait.
    ///
    /// # Panics
    /// If it is not held like that: a mistake of the application.
    pub fn release(&mut self, tag: BlockTag, write: bool) -> Vec<ThreadId> {
        let lock = self.locks.get_mut(&tag).expect("only a held lock is released");
        if write {
            assert!(lock.writer, "only a writer releases a lock for writing");
            lock.writer = false;
        } else {
            lock.readers = lock.readers.checked_sub(1).expect("only a reader releases a lock for reading");
        }
        let mut entered = Vec::new();
        while let Some((thread, write)) = lock.queue.front().copied().filter(|(_, write)| lock.admits(*write))
        {
            lock.queue.pop_front();
            lock.enter(write);
            entered.push(thread);
        }
        if !lock.writer && lock.readers == 0 {
            self.locks.remove(&tag);
        }
        entered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: BlockTag = BlockTag::from_bits(512);

    #[test]
    fn readers_that_stand_together_enter_together_and_do_not_overtake_a_writer() {
        let mut table = LockTable::default();
        assert_eq!(table.ask(TAG, ThreadId(0), false, false), Asked::Granted);
        assert_eq!(table.ask(TAG, ThreadId(1), true, false), Asked::Queued);
        assert_eq!(table.ask(TAG, ThreadId(2), false, false), Asked::Queued);
        assert_eq!(table.ask(TAG, ThreadId(3), false, false), Asked::Queued);
        assert_eq!(table.release(TAG, false), [ThreadId(1)]);
        assert_eq!(table.release(TAG, true), [ThreadId(2), ThreadId(3)]);
    }

    #[test]
    fn who_does_not_want_to_wait_is_refused() {
        let mut table = LockTable::default();
        assert_eq!(table.ask(TAG, ThreadId(0), true, true), Asked::Granted);
        assert_eq!(table.ask(TAG, ThreadId(1), false, true), Asked::Refused);
        assert_eq!(table.release(TAG, true), []);
        assert_eq!(table.ask(TAG, ThreadId(1), false, true), Asked::Granted);
    }
}
