//! From keys, as bits, to places: the only tree.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::{Entry, Range, Values};
use alloc::vec::Vec;
use core::ops::Bound;

/// Where each key is.
#[derive(Clone)]
pub(crate) struct Index {
    places: BTreeMap<u128, u32>,
    /// Places that nobody has any more.
    free: Vec<u32>,
}

// Nothing here is generic, so that the crates that use maps have nothing of the tree to compile.
impl Index {
    pub(crate) const fn new() -> Self {
        Self { places: BTreeMap::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn find(&self, key: u128) -> Option<usize> {
        self.places.get(&key).map(|place| *place as usize)
    }

    /// The key's place, and whether it was there already. A new one is below `places`, how many there are, or that.
    pub(crate) fn put(&mut self, key: u128, places: usize) -> (usize, bool) {
        match self.places.entry(key) {
            Entry::Occupied(place) => (*place.get() as usize, true),
            Entry::Vacant(vacant) => {
                let place =
                    self.free.pop().unwrap_or_else(|| u32::try_from(places).expect("fewer than 2^32 keys"));
                (*vacant.insert(place) as usize, false)
            }
        }
    }

    /// Takes a key out. Its place is free.
    pub(crate) fn remove(&mut self, key: u128) -> Option<usize> {
        let place = self.places.remove(&key)?;
        self.free.push(place);
        Some(place as usize)
    }

    pub(crate) fn all(&self) -> All<'_> {
        All(self.places.values())
    }

    pub(crate) fn range(&self, from: Bound<u128>, to: Bound<u128>) -> Part<'_> {
        Part(self.places.range((from, to)))
    }

    /// The first place in order, or the last.
    pub(crate) fn end(&self, last: bool) -> Option<usize> {
        let end = if last { self.places.last_key_value() } else { self.places.first_key_value() };
        end.map(|(_, place)| *place as usize)
    }
}

/// All places, in order of the keys.
#[derive(Clone)]
pub(crate) struct All<'a>(Values<'a, u128, u32>);

impl Iterator for All<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0.next().map(|place| *place as usize)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for All<'_> {
    fn next_back(&mut self) -> Option<usize> {
        self.0.next_back().map(|place| *place as usize)
    }
}

/// The places of some keys, in their order.
#[derive(Clone)]
pub(crate) struct Part<'a>(Range<'a, u128, u32>);

impl Iterator for Part<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.0.next().map(|(_, place)| *place as usize)
    }
}

impl DoubleEndedIterator for Part<'_> {
    fn next_back(&mut self) -> Option<usize> {
        self.0.next_back().map(|(_, place)| *place as usize)
    }
}
