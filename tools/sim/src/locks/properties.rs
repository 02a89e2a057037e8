//! What must hold for threads inside a lock, seen from outside: writers are alone in the rack, and whoever enters has the
//! data of the last release.

use std::collections::BTreeMap;

use wire::{GlobalAddr, Mode, NodeId};

use crate::system::ThreadId;

#[derive(Clone, Debug)]
struct LockHistory {
    inside: Vec<(ThreadId, Mode)>,
    /// The number that the last writer left. None: what the bytes are is not defined.
    latest: Option<u64>,
}

/// All locks, as their threads see them.
#[derive(Debug, Default)]
pub(super) struct Properties {
    locks: BTreeMap<GlobalAddr, LockHistory>,
}

impl Properties {
    /// A thread is in, and sees data of this number, if there are data. One that has reclaimed a lost lock sees anything.
    pub(super) fn entered(
        &mut self,
        (thread, reclaims): (ThreadId, bool),
        (lock, mode): (GlobalAddr, Mode),
        (stamp, len): (u64, u32),
    ) {
        let state = self.of(lock);
        let writes = |(_, mode): &(ThreadId, Mode)| *mode == Mode::Write;
        assert!(!state.inside.iter().any(writes), "a thread is in {lock:?} beside a writer");
        assert!(
            mode == Mode::Read || state.inside.is_empty(),
            "a writer is in {lock:?} beside readers: {state:?}"
        );
        if reclaims {
            state.latest = None;
        }
        let latest = *state.latest.get_or_insert(stamp);
        assert!(
            len == 0 || stamp == latest,
            "whoever enters {lock:?} has the data of the last release: {stamp}, not {latest}"
        );
        state.inside.push((thread, mode));
    }

    /// A thread has left, and has written this.
    pub(super) fn left(&mut self, thread: ThreadId, (lock, mode): (GlobalAddr, Mode), wrote: Option<u64>) {
        let state = self.of(lock);
        // Of a lock that is no more, nobody is told.
        if let Some(at) = state.inside.iter().position(|it| *it == (thread, mode)) {
            state.inside.swap_remove(at);
            state.latest = wrote.or(state.latest);
        }
    }

    /// These regions are no more, nor is what threads do that are still inside of them.
    pub(super) fn ended(&mut self, first: GlobalAddr, bytes: u64) {
        let end = GlobalAddr::from_bits(first.bits() + bytes);
        for (_, state) in self.locks.range_mut(first..end) {
            (state.latest, state.inside) = (None, Vec::new());
        }
    }

    /// A node has died: with the threads of these numbers, and with its memory.
    pub(super) fn died(&mut self, node: NodeId, threads: impl Fn(ThreadId) -> bool) {
        for (lock, state) in &mut self.locks {
            state.inside.retain(|(thread, _)| !threads(*thread));
            if lock.home() == node {
                (state.latest, state.inside) = (None, Vec::new());
            }
        }
    }

    fn of(&mut self, lock: GlobalAddr) -> &mut LockHistory {
        self.locks.entry(lock).or_insert_with(|| LockHistory { inside: Vec::new(), latest: Some(0) })
    }
}
