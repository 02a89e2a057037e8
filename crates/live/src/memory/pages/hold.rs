//! How long a granted page stays.
//!
//! An access through a pointer reports no end. The thread has to be woken and to make it, and a machine that is full may take a
//! scheduler's slice for that. So the hold grows for who comes again and again with the same access and has not got on: every
//! time an agent waited for the page's end, and nothing was stored there meanwhile. Of a load nobody knows whether it was made;
//! loops that wait for a word look the same. So theirs grow little: whoever is to change the word waits for them.
//!
//! What must always hold: a hold ends, at the latest after [`Pages::LONGEST_HOLD`].

use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use node::Access;
use wire::Nanos;

use super::{Faulted, Pages};

/// Vain grants in a row until holds begin to grow.
const BEFORE_DOUBLING: u8 = 4;
/// How often they double: for stores, and for loads.
pub(super) const MOST_DOUBLINGS: u8 = 6;
const MOST_DOUBLINGS_OF_LOADS: u8 = 2;

/// The hold of one page.
#[derive(Default)]
pub(super) struct Hold {
    /// No agent gets the page before, by the node's clock.
    until: AtomicU64,
    /// An agent was refused because of it.
    was_waited_for: AtomicBool,
    /// Whom it is for ([`Faulted::who`]), what was in the word of his access then, and how often in a row it was in vain.
    who: AtomicU64,
    word: AtomicU64,
    vain: AtomicU8,
}

impl Hold {
    pub(super) fn until(&self) -> Nanos {
        Nanos(self.until.load(Acquire))
    }

    pub(super) fn holds(&self, now: Nanos) -> bool {
        now < self.until()
    }

    /// An agent is refused.
    pub(super) fn refuse(&self) {
        self.was_waited_for.store(true, Relaxed);
    }

    /// Begins anew, for this thread's access to a word that holds this; or for nobody's.
    pub(super) fn begin(&self, now: Nanos, faulted: Option<(&Faulted, u64)>) {
        let Some((faulted, word)) = faulted else {
            self.who.store(0, Relaxed);
            return self.until.store((now + Pages::HOLD).0, Release);
        };
        let again = self.who.swap(faulted.who, Relaxed) == faulted.who;
        let vain = if again { self.vain.load(Relaxed).saturating_add(1) } else { 0 };
        self.vain.store(vain, Relaxed);
        self.word.store(word, Relaxed);
        let most = if faulted.access == Access::Modified { MOST_DOUBLINGS } else { MOST_DOUBLINGS_OF_LOADS };
        let doublings = vain.saturating_sub(BEFORE_DOUBLING).min(most);
        self.until.store((now + Nanos(Pages::HOLD.0 << doublings)).0, Release);
    }

    /// The page goes; the word of the access holds this.
    pub(super) fn end(&self, word: impl FnOnce() -> u64) {
        if !self.was_waited_for.swap(false, Relaxed) || word() != self.word.load(Relaxed) {
            // It stayed longer than it had to, or has been used.
            self.who.store(0, Relaxed);
        }
    }

    /// It is over.
    pub(super) fn stop(&self) {
        self.until.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{GlobalAddr, NodeId};

    /// Grants in a row to the same access, each waited for, with nothing stored; how long each held, in holds.
    fn in_vain(access: Access, grants: u64) -> Vec<u64> {
        let hold = Hold::default();
        let faulted = Faulted::at(GlobalAddr::new(NodeId(0), 8), access, 7);
        let one = |at: u64| {
            let now = Nanos(at * 1_000_000_000);
            hold.begin(now, Some((&faulted, 5)));
            hold.refuse();
            let held = hold.until().saturating_sub(now);
            hold.end(|| 5);
            held.0 / Pages::HOLD.0
        };
        (0..grants).map(one).collect()
    }

    #[test]
    fn who_comes_again_and_again_without_having_got_on_is_left_more_time_within_a_bound() {
        assert_eq!(in_vain(Access::Modified, 12), [1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 64]);
        assert_eq!(in_vain(Access::Shared, 9), [1, 1, 1, 1, 1, 2, 4, 4, 4]);
        assert_eq!(Pages::LONGEST_HOLD.0 / Pages::HOLD.0, 64);
        assert_eq!(*in_vain(Access::Modified, 1000).last().unwrap(), 64);
    }

    #[test]
    fn who_gets_on_or_is_not_waited_for_is_left_no_more() {
        let faulted = Faulted::at(GlobalAddr::new(NodeId(0), 8), Access::Modified, 7);
        for (is_waited_for, stored) in [(true, 6), (false, 5)] {
            let hold = Hold::default();
            for at in 0..20 {
                let now = Nanos(at * 1_000_000_000);
                hold.begin(now, Some((&faulted, 5)));
                assert_eq!(hold.until().saturating_sub(now), Pages::HOLD);
                if is_waited_for {
                    hold.refuse();
                }
                hold.end(|| stored);
            }
        }
    }
}
