//! Rules around another rule, which say for which messages it is meant.
//!
//! They run inside [`super::Rules`]. What must always hold: the rule inside does not see what is outside of its
//! scope, and draws no random number for it. Scopes nest: `only(is_unlock, nth(2, drop_all()))` loses the
//! second unlock, `nth(2, only(is_unlock, drop_all()))` the second message, if that is an unlock.

use wire::Nanos;

use super::{Rule, Verdict};
use crate::system::{Place, Random};

/// For the messages that `are_meant` returns true for.
pub fn only<M>(are_meant: impl Fn(&M) -> bool, rule: impl Rule<M>) -> impl Rule<M> {
    Only { are_meant, rule }
}

/// For the messages from this place to that one; the way back is not meant.
pub fn between<M>(from: Place, to: Place, rule: impl Rule<M>) -> impl Rule<M> {
    Between { from, to, rule }
}

/// For the messages sent from `from` on until before `until`.
pub fn during<M>(from: Nanos, until: Nanos, rule: impl Rule<M>) -> impl Rule<M> {
    During { from, until, rule }
}

/// For the first so many messages.
pub fn first<M>(count: u64, rule: impl Rule<M>) -> impl Rule<M> {
    Numbers { seen: 0, from: 1, until: count.saturating_add(1), rule }
}

/// For one message: the first has number 1.
///
/// # Panics
/// If `number` is 0.
pub fn nth<M>(number: u64, rule: impl Rule<M>) -> impl Rule<M> {
    assert!(number > 0, "the first message has number 1");
    Numbers { seen: 0, from: number, until: number.saturating_add(1), rule }
}

struct Only<F, R> {
    are_meant: F,
    rule: R,
}

impl<M, F: Fn(&M) -> bool, R: Rule<M>> Rule<M> for Only<F, R> {
    fn apply(&mut self, now: Nanos, message: &M, from: Place, to: Place, random: &mut Random) -> Verdict {
        if !(self.are_meant)(message) {
            return Verdict::Pass;
        }
        self.rule.apply(now, message, from, to, random)
    }
}

struct Between<R> {
    from: Place,
    to: Place,
    rule: R,
}

impl<M, R: Rule<M>> Rule<M> for Between<R> {
    fn apply(&mut self, now: Nanos, message: &M, from: Place, to: Place, random: &mut Random) -> Verdict {
        if (from, to) != (self.from, self.to) {
            return Verdict::Pass;
        }
        self.rule.apply(now, message, from, to, random)
    }
}

struct During<R> {
    from: Nanos,
    until: Nanos,
    rule: R,
}

impl<M, R: Rule<M>> Rule<M> for During<R> {
    fn apply(&mut self, now: Nanos, message: &M, from: Place, to: Place, random: &mut Random) -> Verdict {
        if !(self.from..self.until).contains(&now) {
            return Verdict::Pass;
        }
        self.rule.apply(now, message, from, to, random)
    }
}

struct Numbers<R> {
    seen: u64,
    from: u64,
    until: u64,
    rule: R,
}

impl<M, R: Rule<M>> Rule<M> for Numbers<R> {
    fn apply(&mut self, now: Nanos, message: &M, from: Place, to: Place, random: &mut Random) -> Verdict {
        self.seen += 1;
        if !(self.from..self.until).contains(&self.seen) {
            return Verdict::Pass;
        }
        self.rule.apply(now, message, from, to, random)
    }
}
