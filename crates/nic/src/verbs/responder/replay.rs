//! The replay cache: what the last atomics found, for the case that their answers are lost.
//!
//! What must always hold: it holds as many as the peer can have unanswered at a time. So an atomic that is repeated by
//! a peer that keeps to its limit is found.

use alloc::collections::VecDeque;

use wire::roce::Psn;

#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// The newest last.
    found: VecDeque<(Psn, u64)>,
    most: usize,
}

impl Replay {
    pub(crate) const fn new(most: usize) -> Self {
        Self { found: VecDeque::new(), most }
    }

    /// The atomic with this number was executed, and found this.
    pub(crate) fn remember(&mut self, psn: Psn, original: u64) {
        if self.found.len() >= self.most {
            self.found.pop_front();
        }
        if self.most > 0 {
            self.found.push_back((psn, original));
        }
    }

    /// What the atomic with this number found. The newest counts: numbers come round again.
    pub(crate) fn recall(&self, psn: Psn) -> Option<u64> {
        self.found.iter().rev().find(|(number, _)| *number == psn).map(|(_, original)| *original)
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.found.len() <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered_and_no_more() {
        let mut replay = Replay::new(2);
        for number in 0..3 {
            replay.remember(Psn::new(number), u64::from(number) + 10);
        }
        assert_eq!(replay.recall(Psn::new(0)), None);
        assert_eq!(replay.recall(Psn::new(1)), Some(11));
        replay.remember(Psn::new(2), 99);
        assert_eq!(replay.recall(Psn::new(2)), Some(99), "the newest");
        let mut nothing = Replay::new(0);
        nothing.remember(Psn::new(0), 1);
        assert_eq!(nothing.recall(Psn::new(0)), None);
    }
}
