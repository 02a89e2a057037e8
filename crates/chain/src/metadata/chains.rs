//! One key's chain, as far as the metadata server knows it: the tail, and appends whose predecessors it does not know yet.
//!
//! What must always hold: what it calls the tail was the tail once, and has not been taken back since. An entry that is in the chain follows
//! nothing else: whatever else was told of it is forgotten, for the slot that it was told to follow may be the tail again.

use alloc::vec::Vec;

use sorted::Map;
use wire::chains::{EntryKind, EntryVersion, Location};

use crate::words::{Words, put_all, slot};

/// A chain.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    tail: (Location, EntryVersion),
    kind: EntryKind,
    /// What was told to follow what.
    told: Map<Location, (Location, EntryVersion, EntryKind)>,
}

impl Chain {
    /// A chain of one value.
    pub(super) const fn new(at: Location, version: EntryVersion) -> Self {
        Self { tail: (at, version), kind: EntryKind::Value, told: Map::new() }
    }

    pub(super) const fn tail(&self) -> (Location, EntryVersion) {
        self.tail
    }

    /// This is what the tail is.
    pub(super) const fn see(&mut self, kind: EntryKind) {
        self.kind = kind;
    }

    /// Somebody tells that an entry follows another one.
    pub(super) fn note(&mut self, behind: Location, at: Location, version: EntryVersion, kind: EntryKind) {
        self.told.insert(behind, (at, version, kind));
    }

    /// Goes on by one, if that is known; returns what was the tail.
    pub(super) fn advance(&mut self) -> Option<(Location, EntryVersion)> {
        let (at, version, kind) = self.told.remove(&self.tail.0)?;
        self.told.retain(|_, (follower, ..)| *follower != at);
        let before = core::mem::replace(&mut self.tail, (at, version));
        self.kind = kind;
        Some(before)
    }

    /// Something was told whose predecessor is not known.
    pub(super) fn is_waiting(&self) -> bool {
        !self.told.is_empty()
    }

    pub(super) fn put(&self, out: &mut Vec<u64>) {
        out.extend([slot(self.tail.0, self.tail.1), self.kind as u64]);
        put_all(out, self.told.iter(), |out, (behind, (at, version, kind))| {
            out.extend([behind.to_bits().into(), slot(*at, *version), *kind as u64]);
        });
    }

    pub(super) fn take(words: &mut Words<'_>) -> Option<Self> {
        let (tail, kind) = (words.slot()?, words.kind()?);
        let told = words.all(|words| {
            let (behind, (at, version)) = (words.location()?, words.slot()?);
            Some((behind, (at, version, words.kind()?)))
        })?;
        Some(Self { tail, kind, told })
    }

    /// The last that is known is that the key was deleted.
    pub(super) const fn ends_deleted(&self) -> bool {
        matches!(self.kind, EntryKind::Deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::chains::Class;

    #[test]
    fn a_note_of_an_entry_that_has_come_into_the_chain_behind_another_one_is_forgotten() {
        let at = |unit| Location::new(Class::new(0).unwrap(), unit);
        let (first, second, third, fourth) = (at(1), at(2), at(3), at(4));
        let [one, two] = [1, 2].map(EntryVersion);
        let mut chain = Chain::new(first, one);
        chain.note(first, second, one, EntryKind::Value);
        assert_eq!(chain.advance(), Some((first, one)));
        // Wrong: the third one follows the second, and that is found by a walk.
        chain.note(first, third, one, EntryKind::Value);
        chain.note(second, third, one, EntryKind::Value);
        assert_eq!(chain.advance(), Some((second, one)));
        assert!(!chain.is_waiting(), "nothing is without its predecessor");
        // What waits for another one stays.
        chain.note(first, fourth, one, EntryKind::Value);
        // The first slot is in the chain again, in its next use.
        chain.note(third, first, two, EntryKind::Value);
        assert_eq!(chain.advance(), Some((third, one)));
        assert_eq!(chain.tail(), (first, two));
        assert_eq!(chain.advance(), Some((first, two)), "not to the third one");
        assert_eq!((chain.tail(), chain.advance()), ((fourth, one), None));
    }
}
