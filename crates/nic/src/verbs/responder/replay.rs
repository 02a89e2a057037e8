//! The replay cache: how the last requests were answered that must not be executed again, for the case that their answers are
//! lost.
//!
//! Atomics, batches of them, and object reads. What a single word was is kept here; answers that are longer are in slots of the
//! driver's, and only their numbers here.
//!
//! What must always hold: it holds as many as the peer can have unanswered at a time. So a request that is repeated by a peer
//! that keeps to its limit is found; and a slot is not used again while the answer in it may be asked for.

use alloc::collections::VecDeque;

use wire::roce::{Psn, Verdict};
use wire::{Rule, Rules};

/// What a request was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// A word was this.
    Word(u64),
    /// The answer to a batch has so many bytes.
    Batch { len: u32 },
    /// An object of so many bytes; how many packets the answer has numbers for.
    Object { len: u32, packets: u32, verdict: Verdict },
}

/// A request that was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answered {
    /// Its number.
    pub(crate) psn: Psn,
    /// The number of the slot with the answer.
    pub(crate) slot: u32,
    pub(crate) answer: Answer,
}

impl Answered {
    const fn packets(&self) -> u32 {
        match self.answer {
            Answer::Word(_) | Answer::Batch { .. } => 1,
            Answer::Object { packets, .. } => packets,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Replay {
    /// The newest last.
    answered: VecDeque<Answered>,
    /// The slot that is used next.
    slot: u32,
    most: u32,
}

impl Replay {
    /// Holds so many: one at least.
    pub(crate) const fn new(most: u32) -> Self {
        Self { answered: VecDeque::new(), slot: 0, most }
    }

    /// Where the next answer may be put: the oldest one's place, if there is no other.
    pub(crate) const fn next_slot(&self) -> u32 {
        self.slot
    }

    /// The request with this number was executed, and its answer is in the next slot.
    pub(crate) fn remember<R: Rules>(&mut self, rules: R, psn: Psn, answer: Answer) {
        if self.answered.len() as u32 >= self.most {
            self.answered.pop_front();
        }
        self.answered.push_back(Answered { psn, slot: self.slot, answer });
        if rules.holds(Rule::AnswersHaveSlots) {
            self.slot = (self.slot + 1) % self.most;
        }
    }

    /// How the request was answered whose answer this number belongs to. The newest counts: numbers come round again.
    pub(crate) fn recall(&self, psn: Psn) -> Option<&Answered> {
        self.answered.iter().rev().find(|answered| psn.is_within(answered.psn, answered.packets()))
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.answered.len() as u32 <= self.most && self.slot < self.most.max(1)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_last_ones_are_remembered_and_no_more() {
        let mut replay = Replay::new(2);
        for number in 0..3 {
            replay.remember(wire::AllRules, Psn::new(number), Answer::Word(u64::from(number) + 10));
        }
        let word = |replay: &Replay, psn| replay.recall(Psn::new(psn)).map(|answered| answered.answer);
        assert_eq!(word(&replay, 0), None);
        assert_eq!(word(&replay, 1), Some(Answer::Word(11)));
        replay.remember(wire::AllRules, Psn::new(2), Answer::Word(99));
        assert_eq!(word(&replay, 2), Some(Answer::Word(99)), "the newest");
    }

    #[test]
    fn what_is_remembered_lies_in_slots_of_its_own() {
        let mut replay = Replay::new(3);
        let mut used = Vec::new();
        for number in 0..7 {
            used.push(replay.next_slot());
            replay.remember(wire::AllRules, Psn::new(number), Answer::Batch { len: 8 });
        }
        assert_eq!(used, [0, 1, 2, 0, 1, 2, 0]);
        let slots = (4..7).map(|number| replay.recall(Psn::new(number)).unwrap().slot);
        assert_eq!(slots.collect::<Vec<_>>(), [1, 2, 0]);
    }

    #[test]
    fn an_object_is_found_by_each_of_its_numbers() {
        let mut replay = Replay::new(2);
        let verdict = Verdict::Whole(4);
        replay.remember(
            wire::AllRules,
            Psn::new(0xff_ffff),
            Answer::Object { len: 600, packets: 4, verdict },
        );
        assert_eq!(replay.recall(Psn::new(0xff_fffe)), None);
        for number in [0xff_ffff, 0, 1, 2] {
            assert!(replay.recall(Psn::new(number)).is_some(), "{number}");
        }
        assert_eq!(replay.recall(Psn::new(3)), None);
    }
}
