//! How often the switch's blocks cost this node its copy: what the shadow node wants to know (Concordia, section
//! 5.2.2).
//!
//! Reports must not become a load themselves. At the end of an epoch an agent sends a bounded number of them, each
//! about eight neighbouring blocks, and goes on in the next epoch where it stopped; what is not reported adds up.

use core::ops::Bound::{Excluded, Unbounded};

use sorted::Map;
use wire::{BlockSize, BlockTag};

/// Reports of one agent in one epoch: 1,024 blocks.
const MOST_REPORTS: usize = 128;
/// Blocks in a report: as many as `arg` has bytes.
const GROUP: u64 = 8;

/// The counts that were not reported.
#[derive(Default)]
pub(crate) struct Heat {
    counts: Map<BlockTag, u8>,
    /// The last block reported.
    cursor: Option<BlockTag>,
}

impl Heat {
    /// One more.
    pub(crate) fn count(&mut self, tag: BlockTag) {
        let count = self.counts.entry(tag).or_insert(0);
        *count = count.saturating_add(1);
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
    }

    /// What is reported now: a block, and the counts of it and the seven behind it. They start anew.
    pub(crate) fn take(&mut self, block: BlockSize, mut report: impl FnMut(BlockTag, [u8; GROUP as usize])) {
        for _ in 0..MOST_REPORTS {
            let after = self.cursor.map_or(Unbounded, Excluded);
            let next = self.counts.range((after, Unbounded)).next().or_else(|| self.counts.iter().next());
            let Some((&first, _)) = next else { return };
            let mut counts = [0; GROUP as usize];
            for (at, count) in (0..GROUP).zip(&mut counts) {
                let tag = BlockTag::from_bits(first.bits() + (at << block.shift()));
                if let Some(counted) = self.counts.remove(&tag) {
                    *count = counted;
                    self.cursor = Some(tag);
                }
            }
            report(first, counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn tag(number: u64) -> BlockTag {
        BlockTag::from_bits(number << BlockSize::MIN.shift())
    }

    fn taken(heat: &mut Heat) -> Vec<(BlockTag, [u8; 8])> {
        let mut reports = Vec::new();
        heat.take(BlockSize::MIN, |tag, counts| reports.push((tag, counts)));
        reports
    }

    #[test]
    fn neighbours_share_a_report_and_are_reported_once() {
        let mut heat = Heat::default();
        for number in [3, 3, 5, 90] {
            heat.count(tag(number));
        }
        assert_eq!(
            taken(&mut heat),
            [(tag(3), [2, 0, 1, 0, 0, 0, 0, 0]), (tag(90), [1, 0, 0, 0, 0, 0, 0, 0])]
        );
        assert!(taken(&mut heat).is_empty());
    }

    #[test]
    fn an_epoch_has_a_bounded_number_of_reports_and_the_next_goes_on() {
        let mut heat = Heat::default();
        for number in 0..3000 {
            heat.count(tag(number));
        }
        let (first, second, third) = (taken(&mut heat), taken(&mut heat), taken(&mut heat));
        assert_eq!((first.len(), second.len()), (MOST_REPORTS, MOST_REPORTS));
        assert_eq!((first[0].0, second[0].0, third[0].0), (tag(0), tag(1024), tag(2048)));
        assert_eq!(third.len(), (3000 - 2048) / 8);
    }
}
