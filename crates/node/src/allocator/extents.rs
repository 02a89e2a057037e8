//! Free runs of blocks of one home and discipline: best fit, neighbours always merged.
//!
//! Best fit keeps long runs whole, so that chunks become entirely free and can be given back. What must always
//! hold: no two runs touch, and both orders name the same runs.

use core::ops::Range;
use sorted::{Map, Set};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Extents {
    /// First block to blocks.
    by_start: Map<u64, u64>,
    /// (blocks, first block).
    by_size: Set<(u64, u64)>,
}

impl Extents {
    /// Takes `blocks` blocks from the shortest run that has them, the lowest among equals.
    pub(super) fn take(&mut self, blocks: u64) -> Option<u64> {
        let &(length, start) = self.by_size.range((blocks, 0)..).next()?;
        self.by_size.remove(&(length, start));
        self.by_start.remove(&start);
        if length > blocks {
            self.insert(start + blocks, length - blocks);
        }
        Some(start)
    }

    /// Adds blocks that are not in any run, and merges them with their neighbours.
    pub(super) fn give(&mut self, blocks: Range<u64>) {
        let Range { mut start, mut end } = blocks;
        let before = self.by_start.range(..start).next_back().map(|(&at, &length)| (at, length));
        if let Some((at, length)) = before {
            assert!(at + length <= start, "blocks {start}..{end} are free already");
            if at + length == start {
                self.remove(at, length);
                start = at;
            }
        }
        let after = self.by_start.range(start..).next().map(|(&at, &length)| (at, length));
        if let Some((at, length)) = after {
            assert!(end <= at, "blocks {start}..{end} are free already");
            if end == at {
                self.remove(at, length);
                end = at + length;
            }
        }
        self.insert(start, end - start);
    }

    /// Takes exactly these blocks out.
    ///
    /// # Panics
    /// If they are not all free.
    pub(super) fn carve(&mut self, blocks: Range<u64>) {
        let around = self.by_start.range(..=blocks.start).next_back().map(|(&at, &length)| (at, length));
        let (at, length) = around.expect("a run starts at or before these blocks");
        assert!(blocks.end <= at + length, "blocks {blocks:?} are not all in the run {at}+{length}");
        self.remove(at, length);
        if at < blocks.start {
            self.insert(at, blocks.start - at);
        }
        if blocks.end < at + length {
            self.insert(blocks.end, at + length - blocks.end);
        }
    }

    fn insert(&mut self, start: u64, length: u64) {
        self.by_start.insert(start, length);
        self.by_size.insert((length, start));
    }

    fn remove(&mut self, start: u64, length: u64) {
        self.by_start.remove(&start);
        self.by_size.remove(&(length, start));
    }

    /// The runs, in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.by_start.iter().map(|(&start, &length)| start..start + length)
    }

    pub(super) fn assert_invariants(&self) {
        assert_eq!(self.by_start.len(), self.by_size.len(), "both orders name the same runs");
        let mut end = None;
        for run in self.iter() {
            assert!(self.by_size.contains(&(run.end - run.start, run.start)), "{run:?} is in both orders");
            assert!(
                !run.is_empty() && end.is_none_or(|end| end < run.start),
                "{run:?} touches its neighbour"
            );
            end = Some(run.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn with(runs: &[(u64, u64)]) -> Extents {
        let mut extents = Extents::default();
        runs.iter().for_each(|&(start, end)| extents.give(start..end));
        extents.assert_invariants();
        extents
    }

    fn runs(extents: &Extents) -> Vec<(u64, u64)> {
        extents.assert_invariants();
        extents.iter().map(|run| (run.start, run.end)).collect()
    }

    #[test]
    fn the_shortest_run_that_fits_is_used_and_the_lowest_among_equals() {
        let mut extents = with(&[(0, 10), (20, 23), (30, 33), (40, 42)]);
        assert_eq!(extents.take(3), Some(20));
        assert_eq!(extents.take(3), Some(30));
        assert_eq!(extents.take(3), Some(0));
        assert_eq!(extents.take(8), None);
        assert_eq!(runs(&extents), [(3, 10), (40, 42)]);
    }

    #[test]
    fn neighbours_merge_on_either_side_and_on_both() {
        let thirds = [(4, 6), (6, 9), (9, 10)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let extents = with(&order.map(|nth: usize| thirds[nth]));
            assert_eq!(runs(&extents), [(4, 10)], "{order:?}");
        }
    }

    #[test]
    fn carving_leaves_what_is_around_it() {
        type Case<'a> = (Range<u64>, &'a [(u64, u64)]);
        let cases: [Case<'_>; 4] =
            [(2..4, &[(0, 2), (4, 10)]), (0..4, &[(4, 10)]), (4..10, &[(0, 4)]), (0..10, &[])];
        for (carved, left) in cases {
            let mut extents = with(&[(0, 10)]);
            extents.carve(carved);
            assert_eq!(runs(&extents), left);
        }
    }

    #[test]
    #[should_panic(expected = "free already")]
    fn giving_a_free_block_again_is_a_bug() {
        with(&[(2, 5)]).give(4..6);
    }
}
