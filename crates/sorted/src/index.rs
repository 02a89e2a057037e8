//! From keys, as bits, to slots: the only tree. Keys that were found before are found again without it.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::{Entry, Range, Values};
use alloc::vec::Vec;
use core::ops::Bound;

/// Most places where keys are noted; of a smaller tree, so many for each key, so that they seldom share one.
const NOTED: usize = 1 << 12;
const PLACES: usize = 4;
/// No key's slot.
const NOWHERE: u32 = u32::MAX;

/// Where each key is.
#[derive(Clone)]
pub(crate) struct Index {
    slots: BTreeMap<u128, u32>,
    /// Some of them, each at the place that its bits name. Only keys that are in the tree.
    noted: Vec<(u128, u32)>,
    /// Slots that nobody has any more.
    free: Vec<u32>,
}

// Nothing here is generic, so that the crates that use maps have nothing of the tree to compile.
impl Index {
    pub(crate) const fn new() -> Self {
        Self { slots: BTreeMap::new(), noted: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn find(&self, key: u128) -> Option<usize> {
        self.noted_at(self.place(key), key).or_else(|| self.slots.get(&key).map(|slot| *slot as usize))
    }

    /// The same, and notes where it is.
    pub(crate) fn find_again(&mut self, key: u128) -> Option<usize> {
        if let Some(slot) = self.noted_at(self.place(key), key) {
            return Some(slot);
        }
        let slot = *self.slots.get(&key)?;
        self.note(key, slot);
        Some(slot as usize)
    }

    fn note(&mut self, key: u128, slot: u32) {
        let places = (self.len() * PLACES).next_power_of_two().min(NOTED);
        if self.noted.len() < places {
            self.noted = alloc::vec![(0, NOWHERE); places];
        }
        let place = self.place(key);
        self.noted[place] = (key, slot);
    }

    fn noted_at(&self, place: usize, key: u128) -> Option<usize> {
        let (noted, slot) = *self.noted.get(place)?;
        (noted == key && slot != NOWHERE).then_some(slot as usize)
    }

    /// Where a key would be noted.
    fn place(&self, key: u128) -> usize {
        let mixed = (key ^ key >> 64) as u64;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & self.noted.len().wrapping_sub(1)
    }

    /// The key's slot, and whether it was there already. A new one is below `slots`, how many there are, or that. It is noted: whoever puts
    /// something in looks for it soon.
    pub(crate) fn put(&mut self, key: u128, slots: usize) -> (usize, bool) {
        match self.slots.entry(key) {
            Entry::Occupied(slot) => (*slot.get() as usize, true),
            Entry::Vacant(vacant) => {
                let slot =
                    self.free.pop().unwrap_or_else(|| u32::try_from(slots).expect("fewer than 2^32 keys"));
                vacant.insert(slot);
                self.note(key, slot);
                (slot as usize, false)
            }
        }
    }

    /// Takes a key out. Its slot is free.
    pub(crate) fn remove(&mut self, key: u128) -> Option<usize> {
        let slot = self.slots.remove(&key)?;
        let place = self.place(key);
        if let Some(noted) = self.noted.get_mut(place).filter(|(noted, _)| *noted == key) {
            noted.1 = NOWHERE;
        }
        self.free.push(slot);
        Some(slot as usize)
    }

    pub(crate) fn all(&self) -> All<'_> {
        All(self.slots.values())
    }

    pub(crate) fn range(&self, from: Bound<u128>, to: Bound<u128>) -> Part<'_> {
        Part(self.slots.range((from, to)))
    }

    /// The first slot in order, or the last.
    pub(crate) fn end(&self, last: bool) -> Option<usize> {
        let end = if last { self.slots.last_key_value() } else { self.slots.first_key_value() };
        end.map(|(_, slot)| *slot as usize)
    }
}

/// All slots, in order of the keys.
#[derive(Clone)]
pub(crate) struct All<'a>(Values<'a, u128, u32>);

impl Iterator for All<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0.next().map(|slot| *slot as usize)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for All<'_> {
    fn next_back(&mut self) -> Option<usize> {
        self.0.next_back().map(|slot| *slot as usize)
    }
}

/// The slots of some keys, in their order.
#[derive(Clone)]
pub(crate) struct Part<'a>(Range<'a, u128, u32>);

impl Iterator for Part<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0.next().map(|(_, slot)| *slot as usize)
    }
}

impl DoubleEndedIterator for Part<'_> {
    fn next_back(&mut self) -> Option<usize> {
        self.0.next_back().map(|(_, slot)| *slot as usize)
    }
}
