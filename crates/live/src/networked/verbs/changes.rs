//! Which parts of a region others change while it is copied: what a NIC beside memory that moves keeps.
//!
//! At the memory of which a copy is made. Passes have numbers: what has changed since the last one is handed out when the next one begins, and
//! again to whoever asks for the same pass again. What must always hold: what was changed behind the begin of a pass is in the
//! next one, or was already seen by whoever reads in this one; passes of a copy that another one has come in the place of are refused.

use std::ops::Range;

use wire::NodeId;
use wire::chains::UNIT;

/// Bytes that are told apart. Of what a put links, only one word changes.
const GRANULE: u64 = 4 * UNIT;
const BITS: usize = u64::BITS as usize;

/// Who copies, and which of its copies that is.
pub(crate) type Copyist = (NodeId, u64);

/// What has changed in a region.
pub(super) struct Changes {
    by: Copyist,
    pass: u32,
    /// In this pass, and in the one before: a bit for each granule.
    now: Box<[u64]>,
    before: Box<[u64]>,
}

impl Changes {
    /// Nothing yet, in so many bytes.
    pub(super) fn new(by: Copyist, bytes: u64) -> Self {
        let words = bytes.div_ceil(GRANULE).div_ceil(BITS as u64) as usize;
        Self { by, pass: 0, now: vec![0; words].into(), before: vec![0; words].into() }
    }

    /// These bytes have changed. After they did: whoever was handed the pass before has not seen them.
    pub(super) fn note(&mut self, offset: u64, len: usize) {
        let last = offset + (len as u64).max(1) - 1;
        for granule in offset / GRANULE..=last / GRANULE {
            self.now[granule as usize / BITS] |= 1 << (granule % BITS as u64);
        }
    }

    pub(super) fn is_for(&self, by: Copyist) -> bool {
        self.by == by
    }

    /// The same, in a pass that has begun, or begins. None: it is over, or is not the next one, or is another copy's.
    pub(super) fn at(&mut self, by: Copyist, pass: u32) -> Option<&Self> {
        if by != self.by {
            return None;
        }
        if pass == self.pass + 1 {
            std::mem::swap(&mut self.now, &mut self.before);
            self.now.fill(0);
            self.pass = pass;
        }
        (pass == self.pass).then_some(self)
    }

    /// What had changed when the pass began, in bytes, from this one on.
    pub(super) fn from(&self, first: u64) -> impl Iterator<Item = Range<u64>> {
        let has_changed = |granule: &u64| {
            let word = self.before.get(*granule as usize / BITS);
            word.is_some_and(|word| word >> (granule % BITS as u64) & 1 == 1)
        };
        let end = (self.before.len() * BITS) as u64;
        let mut next = first.div_ceil(GRANULE);
        std::iter::from_fn(move || {
            // Most words are empty.
            while next < end && !has_changed(&next) {
                let word = self.before[next as usize / BITS] >> (next % BITS as u64);
                next += if word == 0 { BITS as u64 - next % BITS as u64 } else { 1 };
            }
            let begin = next;
            while has_changed(&next) {
                next += 1;
            }
            (begin < next).then(|| begin * GRANULE..next * GRANULE)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(changes: &Changes, first: u64) -> Vec<(u64, u64)> {
        changes.from(first).map(|bytes| (bytes.start / GRANULE, bytes.end / GRANULE)).collect()
    }

    #[test]
    fn what_changes_is_handed_out_with_the_next_pass_and_again_to_whoever_asks_again() {
        let by = (NodeId(1), 7);
        let mut changes = Changes::new(by, 1000 * GRANULE);
        changes.note(0, 1);
        changes.note(3 * GRANULE - 1, 2);
        changes.note(64 * GRANULE, GRANULE as usize);
        changes.note(999 * GRANULE, 8);
        assert_eq!(handed(&changes, 0), [], "that pass has not begun");
        changes.at(by, 1).unwrap();
        let all = [(0, 1), (2, 4), (64, 65), (999, 1000)];
        assert_eq!(handed(&changes, 0), all);
        changes.note(5 * GRANULE, 1);
        changes.at(by, 1).expect("its answer was lost");
        assert_eq!(handed(&changes, 0), all);
        assert_eq!(handed(&changes, 4 * GRANULE), all[2..], "the rest of it");
        changes.at(by, 2).unwrap();
        assert_eq!(handed(&changes, 0), [(5, 6)]);
        changes.at(by, 3).unwrap();
        assert_eq!(handed(&changes, 0), []);
    }

    #[test]
    fn another_copy_and_a_pass_too_far_are_refused() {
        let by = (NodeId(1), 7);
        let mut changes = Changes::new(by, GRANULE);
        changes.note(0, 8);
        for (by, pass) in [((NodeId(1), 8), 1), ((NodeId(2), 7), 1), (by, 2)] {
            assert!(changes.at(by, pass).is_none());
        }
        changes.at(by, 1).unwrap();
        assert_eq!(handed(&changes, 0), [(0, 1)], "nothing was taken away by those");
        assert!(changes.at(by, 0).is_none(), "it is over");
    }
}
