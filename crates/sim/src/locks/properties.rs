//! What must hold for threads inside a lock, seen from outside: writers are alone in the rack, and whoever enters has the
//! data of the last release.

use std::collections::BTreeMap;

use wire::{GlobalAddr, Mode};

#[derive(Clone, Copy, Debug, Default)]
struct State {
    readers: u32,
    writer: bool,
    /// The number that the last writer left.
    latest: u64,
}

/// All locks, as their threads see them.
#[derive(Debug)]
pub(super) struct Properties {
    locks: BTreeMap<GlobalAddr, State>,
    /// They guard something.
    have_data: bool,
}

impl Properties {
    pub(super) const fn new(have_data: bool) -> Self {
        Self { locks: BTreeMap::new(), have_data }
    }

    /// A thread is in, and sees data of this number.
    pub(super) fn entered(&mut self, lock: GlobalAddr, mode: Mode, stamp: u64) {
        let state = self.locks.entry(lock).or_default();
        assert!(!state.writer, "a thread is in {lock:?} beside a writer");
        assert!(
            !self.have_data || stamp == state.latest,
            "whoever enters {lock:?} has the data of the last release"
        );
        match mode {
            Mode::Read => state.readers += 1,
            Mode::Write => {
                assert_eq!(state.readers, 0, "a writer is in {lock:?} beside readers");
                state.writer = true;
            }
        }
    }

    /// A thread has left, and has written this.
    pub(super) fn left(&mut self, lock: GlobalAddr, mode: Mode, wrote: Option<u64>) {
        let state = self.locks.entry(lock).or_default();
        match mode {
            Mode::Read => state.readers = state.readers.checked_sub(1).expect("a reader leaves"),
            Mode::Write => state.writer = false,
        }
        state.latest = wrote.unwrap_or(state.latest);
    }
}
