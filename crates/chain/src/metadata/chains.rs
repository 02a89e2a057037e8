//! One key's chain, as far as the metadata server knows it: the tail, and appends whose predecessors it does not know yet.
//!
//! What must always hold: what it calls the tail was the tail once, and has not been taken back since.

use alloc::collections::BTreeMap;

use wire::chain::{EntryKind, EntryVersion, Location};

/// A chain.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    tail: (Location, EntryVersion),
    kind: EntryKind,
    /// What was told to follow what.
    told: BTreeMap<Location, (Location, EntryVersion, EntryKind)>,
}

impl Chain {
    /// A chain of one value.
    pub(super) const fn new(at: Location, version: EntryVersion) -> Self {
        Self { tail: (at, version), kind: EntryKind::Value, told: BTreeMap::new() }
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
        let before = core::mem::replace(&mut self.tail, (at, version));
        self.kind = kind;
        Some(before)
    }

    /// Something was told whose predecessor is not known.
    pub(super) fn is_waiting(&self) -> bool {
        !self.told.is_empty()
    }

    /// The last that is known is that the key was deleted.
    pub(super) const fn ends_deleted(&self) -> bool {
        matches!(self.kind, EntryKind::Deleted)
    }
}
