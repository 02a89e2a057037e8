//! The kinds of pass that packets make, and what the arrays do in each.
//!
//! A parser supplies such constants: what is asked of each array follows from the type of packet alone, and in
//! a second pass from what the packet carries. The program is worked out for each kind of pass when the switch
//! is built, so that nothing of this is asked again at run time.

use alloc::vec::Vec;

use wire::{PacketKind, Rule, Rules};

use super::layout::{Fields, WAYS, class, last_op, lock_op, meta_op, score_op, tag_op};
use crate::pipeline::{Field, alu};

/// A kind of pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pass {
    /// A request other than ADD-TO-SWITCH: lock, check, forward.
    Request(PacketKind),
    /// An unlock's first pass: raise LAST-UNLOCK, read the score.
    Unlock,
    /// The same, if the requester has handed the lock over itself.
    Handed,
    /// Its second pass, of an event without a lock: reset the score.
    Reset,
    /// Of an event whose entry goes: clear it.
    Clear,
    /// Of an event that changes no metadata: release the lock.
    Release,
    /// Of an event that changes no metadata and has the lock for writing, if there may be a queue.
    Leave,
    /// Of one that does: leave, install the metadata.
    LeaveAndSet,
    /// Of a READ-MISS: release, merge the copysets.
    ReleaseAndMerge,
    /// Of the other events: release, install the metadata.
    ReleaseAndSet,
    /// A PEEK: read the entry.
    Peek,
    /// An ADD's first pass: look for the tag, or capacity for it.
    Add,
    /// Its second pass: claim that way. The entry is inserted locked, and the score becomes the outcome, in place
    /// of the CLAIMING mark: one acquisition if the way was still empty, else a refusal.
    Claim(u8),
}

const REQUESTS: usize = PacketKind::RemoveFromSwitch as usize + 1;

impl Pass {
    const AFTER_REQUESTS: [Self; 11] = [
        Self::Unlock,
        Self::Reset,
        Self::Clear,
        Self::Release,
        Self::ReleaseAndMerge,
        Self::ReleaseAndSet,
        Self::Add,
        Self::Handed,
        Self::Leave,
        Self::LeaveAndSet,
        Self::Peek,
    ];

    /// Numbers of kinds are below this.
    pub(super) const COUNT: u64 = (REQUESTS + Self::AFTER_REQUESTS.len() + WAYS) as u64;

    /// True if a packet's first pass can be of this kind.
    pub(super) const fn may_be_first(self) -> bool {
        // The reset is a mutant's.
        matches!(self, Self::Request(_) | Self::Unlock | Self::Handed | Self::Add | Self::Peek | Self::Reset)
    }

    /// True if its second can.
    pub(super) const fn may_be_second(self) -> bool {
        matches!(self, Self::Reset) || !self.may_be_first()
    }

    /// All of them, by [`Pass::index`].
    pub(super) fn all() -> impl Iterator<Item = Self> {
        // There is no kind 0; and the place of ADD-TO-SWITCH, which is no plain request, stays unused.
        let requests = (0..REQUESTS).map(|at| {
            let kind = u8::try_from(at).ok().and_then(PacketKind::from_wire);
            Self::Request(kind.unwrap_or(PacketKind::ReadMiss))
        });
        let claims = (0..WAYS).filter_map(|way| u8::try_from(way).ok()).map(Self::Claim);
        requests.chain(Self::AFTER_REQUESTS).chain(claims)
    }

    /// The kind of pass with this number, if there is one.
    #[inline]
    pub(super) fn from_index(index: u64) -> Option<Self> {
        let index = usize::try_from(index).ok()?;
        if index < REQUESTS {
            return u8::try_from(index).ok().and_then(PacketKind::from_wire).map(Self::Request);
        }
        let index = index - REQUESTS;
        let way =
            || u8::try_from(index - Self::AFTER_REQUESTS.len()).ok().filter(|way| usize::from(*way) < WAYS);
        Self::AFTER_REQUESTS.get(index).copied().or_else(|| way().map(Self::Claim))
    }

    /// A dense number. None has 0.
    pub(super) const fn index(self) -> usize {
        match self {
            Self::Request(kind) => kind as usize,
            Self::Unlock => REQUESTS,
            Self::Reset => REQUESTS + 1,
            Self::Clear => REQUESTS + 2,
            Self::Release => REQUESTS + 3,
            Self::ReleaseAndMerge => REQUESTS + 4,
            Self::ReleaseAndSet => REQUESTS + 5,
            Self::Add => REQUESTS + 6,
            Self::Handed => REQUESTS + 7,
            Self::Leave => REQUESTS + 8,
            Self::LeaveAndSet => REQUESTS + 9,
            Self::Peek => REQUESTS + 10,
            Self::Claim(way) => REQUESTS + Self::AFTER_REQUESTS.len() + way as usize,
        }
    }

    /// What the parser supplies in every pass of this kind: whatever the program asks of gates, selectors and keys
    /// that does not depend on the single packet.
    pub(super) fn constants<R: Rules>(self, rules: R, f: &Fields) -> Vec<(Field, u64)> {
        let Operations { class, event, last, tag, lock, meta, score } = self.operations(rules);
        let mut constants = Vec::from([
            (f.class, class),
            (f.event, event),
            (f.last_op, last),
            (f.tag_op, tag),
            (f.lock_op, lock),
            (f.meta_op, meta),
            (f.score_op, score),
        ]);
        if last == 0 {
            // LAST-UNLOCK says nothing: the first pass has asked it.
            constants.push((f.order, alu::NEWER));
        }
        constants
    }

    fn operations<R: Rules>(self, rules: R) -> Operations {
        let none = Operations { class: 0, event: 0, last: 0, tag: 0, lock: 0, meta: 0, score: 0 };
        let unlock_again = Operations { class: class::UNLOCK_AGAIN, score: score_op::SET, ..none };
        let release = Operations { tag: tag_op::MATCH, lock: lock_op::RELEASE, ..unlock_again };
        match self {
            Self::Request(kind) => Operations {
                class: class::REQUEST,
                event: kind as u64,
                last: if rules.holds(Rule::LastUnlockFiltersRequests) { last_op::COMPARE } else { 0 },
                tag: tag_op::MATCH,
                lock: if kind.takes_read_lock(rules) { lock_op::TRY_READ } else { lock_op::TRY_WRITE },
                meta: meta_op::READ,
                score: if rules.holds(Rule::Scoreboard) { score_op::COUNT_OR_MARK } else { score_op::SET },
            },
            Self::Peek => Operations {
                class: class::PEEK,
                event: PacketKind::Peek as u64,
                tag: tag_op::MATCH,
                meta: meta_op::READ,
                ..none
            },
            Self::Unlock => Operations {
                class: class::UNLOCK,
                last: last_op::RAISE,
                score: score_op::READ_OR_MARK,
                ..none
            },
            Self::Handed => {
                Operations { class: class::HANDED, last: last_op::RAISE, score: score_op::TAKE, ..none }
            }
            Self::Leave => Operations { lock: lock_op::LEAVE, ..release },
            Self::LeaveAndSet => Operations { lock: lock_op::LEAVE, meta: meta_op::SET, ..release },
            Self::Reset => unlock_again,
            Self::Clear => {
                Operations { tag: tag_op::CLEAR, lock: lock_op::SET, meta: meta_op::SET, ..unlock_again }
            }
            Self::Release => release,
            Self::ReleaseAndMerge => Operations { meta: meta_op::UNION, ..release },
            Self::ReleaseAndSet => Operations { meta: meta_op::SET, ..release },
            Self::Add => Operations {
                class: class::ADD,
                last: last_op::COMPARE,
                tag: tag_op::PROBE,
                score: score_op::READ_OR_MARK,
                ..none
            },
            Self::Claim(way) => Operations {
                class: class::ADD_AGAIN,
                last: last_op::COMPARE,
                tag: tag_op::CLAIM + way as u64,
                lock: lock_op::TRY_WRITE,
                meta: meta_op::SET,
                score: score_op::SET,
                ..none
            },
        }
    }
}

/// The operation fields. 0: nothing.
struct Operations {
    class: u64,
    event: u64,
    last: u64,
    tag: u64,
    lock: u64,
    meta: u64,
    score: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_pass_has_its_own_number() {
        for (at, pass) in Pass::all().enumerate() {
            let unused = at == 0 || at == PacketKind::AddToSwitch as usize;
            assert!(pass.index() == at || unused, "{pass:?} is at {at}");
        }
        let last = Pass::Claim(u8::try_from(WAYS - 1).unwrap());
        assert_eq!(Pass::all().count(), last.index() + 1);
    }
}
