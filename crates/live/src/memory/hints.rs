//! Where one application handle found its blocks last.
//!
//! A hint is only a guess: whoever follows one compares the frame's generation afterwards, and the frame held
//! the hint's block for the whole of that generation. So hints are never invalidated from outside, cost
//! agents nothing, and need no synchronization: each handle owns its own.
//!
//! The table is a structure of arrays. On a chain of dependent reads the latency of a hit is that of finding
//! the row, one load from `bases`, and the load of the word itself: everything else runs beside it.

use node::FrameId;

/// Rows. With 4 KiB blocks they cover 2 MiB, and the table fits into the first-level cache along with the
/// metadata of the frames.
const ROWS: usize = 512;

/// No block has this key.
const NO_KEY: u64 = u64::MAX;

/// The home's number goes into the row, too, above [`HOME_SHIFT`]: allocations start at equal offsets on all
/// homes, and the same offset on 16 homes must not mean one row.
const HOME_SHIFT: u32 = 43;

struct Rows {
    keys: [u64; ROWS],
    generations: [u64; ROWS],
    bases: [usize; ROWS],
    frames: [u32; ROWS],
}

/// The hints of one application handle, for one cache, and its count of hits.
pub struct Hints {
    rows: Box<Rows>,
    hits: u64,
}

/// What is known about a frame that held a block.
#[derive(Clone, Copy)]
pub(super) struct Hint {
    /// The frame.
    pub(super) frame: FrameId,
    /// When: its generation, in place.
    pub(super) generation: u64,
    /// The index of its first word in the cache's data, margins included.
    pub(super) base: usize,
}

impl Hints {
    /// No hints.
    pub fn new() -> Self {
        Self {
            rows: Box::new(Rows {
                keys: [NO_KEY; ROWS],
                generations: [0; ROWS],
                bases: [0; ROWS],
                frames: [0; ROWS],
            }),
            hits: 0,
        }
    }

    /// Accesses that hit in the cache, by this handle, so far.
    pub fn hits(&self) -> u64 {
        self.hits
    }

    #[inline]
    pub(super) fn count_hit(&mut self) {
        self.hits += 1;
    }

    /// The row for an address in blocks of `1 << shift` bytes.
    #[inline]
    pub(super) fn row(addr: u64, shift: u32) -> usize {
        ((addr >> shift) ^ (addr >> HOME_SHIFT)) as usize % ROWS
    }

    /// The hint in this row, if it was stored under this key (see [`super::lru`]).
    #[inline]
    pub(super) fn get(&self, row: usize, key: u64) -> Option<Hint> {
        let row = row % ROWS;
        (self.rows.keys[row] == key).then(|| Hint {
            frame: FrameId(self.rows.frames[row]),
            generation: self.rows.generations[row],
            base: self.rows.bases[row],
        })
    }

    pub(super) fn set(&mut self, row: usize, key: u64, hint: Hint) {
        let row = row % ROWS;
        self.rows.keys[row] = key;
        self.rows.frames[row] = hint.frame.0;
        self.rows.generations[row] = hint.generation;
        self.rows.bases[row] = hint.base;
    }
}

impl Default for Hints {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{GlobalAddr, NodeId};

    #[test]
    fn equal_offsets_on_16_homes_have_rows_of_their_own() {
        let mut rows: Vec<usize> =
            (0..16).map(|n| Hints::row(GlobalAddr::new(NodeId(n), 0x5000).bits(), 12)).collect();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), 16);
    }

    #[test]
    fn neighbouring_blocks_have_rows_of_their_own() {
        let mut rows: Vec<usize> = (0..512).map(|block| Hints::row(block << 12, 12)).collect();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), 512);
    }
}
