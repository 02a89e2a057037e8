//! The memory of slots: rows that are handed from slot to slot.
//!
//! It runs inside the event queue. What must always hold: a row that is not in use is empty, and memory that its
//! last slot did not need is not kept.

/// How many unused places of a row do not matter.
const SMALL: usize = 64;

/// Rows that no slot uses at the moment.
pub(super) struct Spare<T> {
    rows: Vec<Vec<T>>,
}

impl<T> Spare<T> {
    /// None.
    pub(super) const fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// A row for a slot: the one that was given back last, since its memory is nearest.
    #[inline]
    pub(super) fn take(&mut self) -> Vec<T> {
        self.rows.pop().unwrap_or_default()
    }

    /// A slot's row, which held up to `used` events, is empty. One that was far too large is freed: so a crowded instant
    /// does not leave rows behind that are carried about with an event each.
    #[inline]
    pub(super) fn give_back(&mut self, row: Vec<T>, used: usize) {
        debug_assert!(row.is_empty(), "a row with events was given back");
        if row.capacity() <= SMALL + 4 * used {
            self.rows.push(row);
        }
    }

    /// For how many events there is memory.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.rows.iter().map(Vec::capacity).sum()
    }
}
