//! Where a handle found its locks last.

use wire::GlobalAddr;

/// How many locks a handle remembers.
const ENTRIES: usize = 256;

#[derive(Clone, Copy)]
struct Entry {
    lock: GlobalAddr,
    len: u32,
    slot: u32,
    generation: u64,
}

/// Belongs to a thread's handle. A wrong hint fails like an old one.
#[derive(Default)]
pub struct LockHints {
    /// Empty until the first lock.
    entries: Vec<Option<Entry>>,
}

impl LockHints {
    /// Knows nothing.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// The slot, and its generation.
    #[inline]
    pub(super) fn find(&self, lock: GlobalAddr, len: u32) -> Option<(u32, u64)> {
        let entry = self.entries.get(index(lock))?.as_ref()?;
        (entry.lock == lock && entry.len == len).then_some((entry.slot, entry.generation))
    }

    pub(super) fn note(&mut self, (lock, len): (GlobalAddr, u32), slot: u32, generation: u64) {
        if self.entries.is_empty() {
            self.entries.resize(ENTRIES, None);
        }
        self.entries[index(lock)] = Some(Entry { lock, len, slot, generation });
    }
}

#[inline]
fn index(lock: GlobalAddr) -> usize {
    // Neighbours apart, and nodes, too.
    (lock.bits() >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - ENTRIES.ilog2())
}
