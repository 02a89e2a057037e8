//! What is counted of mapped memory.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Pages;

/// What a node has mapped, and what was done for those who access it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MappedCounts {
    /// Bytes in ranges that are mapped now.
    pub bytes: u64,
    /// Accesses through pointers that waited for the rack.
    pub faults: u64,
    /// Of those, the ones that were resolved in place, by the thread that had the fault.
    pub in_place: u64,
    /// Blocks that were to come along because the accesses followed each other.
    pub ahead: u64,
}

impl MappedCounts {
    pub(crate) const WORDS: usize = 4;

    /// As one after the other.
    pub(crate) fn words(&self) -> [u64; Self::WORDS] {
        [self.bytes, self.faults, self.in_place, self.ahead]
    }

    pub(crate) fn of_words(mut next: impl FnMut() -> u64) -> Self {
        Self { bytes: next(), faults: next(), in_place: next(), ahead: next() }
    }
}

#[derive(Default)]
pub(super) struct Counters {
    faults: AtomicU64,
    ahead: AtomicU64,
}

impl Pages {
    /// What has been counted.
    pub fn counts(&self) -> MappedCounts {
        let blocks: u64 = self.table().ranges.iter().map(|(_, blocks)| blocks).sum();
        let faults = self.counters.faults.load(Relaxed);
        MappedCounts {
            bytes: blocks << self.block.shift(),
            faults,
            in_place: if self.in_place { faults } else { 0 },
            ahead: self.counters.ahead.load(Relaxed),
        }
    }

    /// A thread waits for its access, and as many blocks behind are to come along.
    pub(crate) fn count_fault(&self, ahead: usize) {
        self.counters.faults.fetch_add(1, Relaxed);
        self.counters.ahead.fetch_add(ahead as u64, Relaxed);
    }
}
