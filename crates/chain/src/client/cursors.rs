//! What a client knows of chains: where a tail was, and for how long that counts.
//!
//! What must always hold: nothing is read at a cursor that has expired; what an operation has learned throws back no other one.

use wire::chains::{EntryVersion, Location, Next, Word};
use wire::{Nanos, Rules};

use super::{Client, Op};
use crate::Verb;

/// Where a chain's tail was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cursor {
    pub(super) at: Location,
    pub(super) version: EntryVersion,
    /// A moment when the entry was in use, or one that it follows in the chain.
    pub(super) known: Nanos,
}

impl Cursor {
    /// True if that is of the same use of the same slot.
    pub(super) fn is(&self, other: Self) -> bool {
        (self.at, self.version) == (other.at, other.version)
    }
}

impl<R: Rules> Client<R> {
    pub(super) fn counts(&self, now: Nanos, cursor: &Cursor) -> bool {
        now.saturating_sub(cursor.known) < self.config.lease
    }

    /// The next step of an operation may begin there.
    pub(super) fn takes(&self, now: Nanos, op: &Op, cursor: &Cursor) -> bool {
        let appends = op.slot.is_some() && !op.is_walking;
        self.counts(now, cursor) || appends && now.saturating_sub(cursor.known) < self.appends
    }

    /// What an operation that went from a cursor has learned: it counts, unless another one has learned something meanwhile. That
    /// one began no earlier from the same cursor, or later from a later one, and would be thrown back.
    pub(super) fn learn_from(&mut self, now: Nanos, key: u64, from: Cursor, cursor: Cursor) {
        let is_last = |last: &Cursor| (last.at, last.version) == (from.at, from.version);
        let last = self.cursors.get(&key).filter(|last| self.counts(now, last));
        if last.is_none_or(is_last) {
            self.learn(key, cursor);
        }
    }

    pub(super) fn learn(&mut self, key: u64, cursor: Cursor) {
        if self.cursors.len() >= self.config.cursors && !self.cursors.contains_key(&key) {
            // The one behind it: as good as any.
            let other = self.cursors.range(key..).next().or_else(|| self.cursors.first_key_value());
            if let Some(other) = other.map(|(other, _)| *other) {
                self.cursors.remove(&other);
            }
        }
        self.cursors.insert(key, cursor);
    }
}

/// Puts an entry behind that one.
pub(super) const fn swap(tail: &Cursor, (at, version): (Location, EntryVersion)) -> Verb {
    let expected = Word::tail(tail.version);
    Verb::CompareSwap { at: tail.at, expected, new: expected.followed_by(Next::Entry(at, version)) }
}
