//! Faults of the network, as rules that are put together.
//!
//! The rack asks [`Rules`] once for every message that is sent from one place to another. What must always
//! hold: what is decided depends on nothing but the rules, the messages so far and the run's generator, so that
//! a seed replays every fault.
//!
//! # How rules compose
//! 1. Rules are applied in the order in which they were added. Each sees every copy of the message that the
//!    rules before it have left, in order: the original, then its duplicates.
//! 2. A copy that one rule drops or corrupts is gone: no later rule sees it. So it is not delayed, and
//!    [`nth`] and [`first`] of later rules do not count it.
//! 3. Delays add up. Each rule sees the time at which the message was sent, whatever delays came before.
//! 4. A duplicate is as late as its original was at that rule, and comes the rule's span after it. From there
//!    on the two are separate: the later rules decide on each, the same rule does not see the duplicate again.
//!
//! A corrupt message is dropped, and counted by itself: Ethernet's checksum, and that of RoCE, let the
//! receiving NIC throw it away. What our parser does with bytes that no checksum protected is tested where it
//! is, in the `wire` crate.

mod chance;
mod counts;
mod scope;
mod timing;

use wire::Nanos;

use crate::system::{Place, Random};

pub use chance::{corrupt_per_mille, drop_all, drop_per_mille, duplicate_per_mille, partition};
pub use counts::Counts;
pub use scope::{between, during, first, nth, only};
pub use timing::{delay, hold, reorder};

/// What a rule wants done with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing.
    Pass,
    /// Lose it.
    Drop,
    /// Let it come later by this.
    Delay(Nanos),
    /// Let it come, and once more, later by this.
    Duplicate(Nanos),
    /// Damage it on the way.
    Corrupt,
}

/// One kind of fault, with what it remembers.
pub trait Rule<M> {
    /// Decides on a message that is sent at `now`.
    fn apply(&mut self, now: Nanos, message: &M, from: Place, to: Place, random: &mut Random) -> Verdict;
}

impl<M, R: Rule<M> + ?Sized> Rule<M> for Box<R> {
    fn apply(&mut self, now: Nanos, message: &M, from: Place, to: Place, random: &mut Random) -> Verdict {
        (**self).apply(now, message, from, to, random)
    }
}

/// The rules of a run.
pub struct Rules<M> {
    rules: Vec<Box<dyn Rule<M> + Send>>,
    counts: Counts,
}

impl<M> Rules<M> {
    /// A network without faults.
    pub const fn none() -> Self {
        Self { rules: Vec::new(), counts: Counts::NONE }
    }

    /// With this rule after those that are there.
    #[must_use]
    pub fn with(mut self, rule: impl Rule<M> + Send + 'static) -> Self {
        self.add(rule);
        self
    }

    /// Adds this rule after those that are there.
    pub fn add(&mut self, rule: impl Rule<M> + Send + 'static) {
        self.rules.push(Box::new(rule));
    }

    /// Removes all rules: the network is in order from now on. What was counted stays.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// Whether there are none, so that nothing needs to be asked.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Decides on a message that is sent at `now`. Fills `copies` with the delay of each copy that arrives:
    /// none if it is lost, one zero if nothing happens to it.
    pub fn apply(
        &mut self,
        now: Nanos,
        message: &M,
        from: Place,
        to: Place,
        random: &mut Random,
        copies: &mut Vec<Nanos>,
    ) {
        copies.clear();
        copies.push(Nanos::ZERO);
        for rule in &mut self.rules {
            let mut at = 0;
            // A duplicate is put behind the others of its rule, and this rule does not see it.
            let mut unseen = copies.len();
            while at < unseen {
                let verdict = rule.apply(now, message, from, to, random);
                self.counts.count(verdict);
                match verdict {
                    Verdict::Pass => at += 1,
                    Verdict::Delay(span) => {
                        copies[at] += span;
                        at += 1;
                    }
                    Verdict::Duplicate(span) => {
                        copies.push(copies[at] + span);
                        at += 1;
                    }
                    Verdict::Drop | Verdict::Corrupt => {
                        copies.remove(at);
                        unseen -= 1;
                    }
                }
            }
            if copies.is_empty() {
                return;
            }
        }
        self.counts.passed += copies.len() as u64;
    }

    /// What has been decided so far.
    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

impl<M> Default for Rules<M> {
    fn default() -> Self {
        Self::none()
    }
}

impl<M> core::fmt::Debug for Rules<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Rules").field("rules", &self.rules.len()).field("counts", &self.counts).finish()
    }
}
