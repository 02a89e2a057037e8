//! Maps.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Bound, Index, RangeBounds};

use crate::Key;

/// A map in order of its keys. Methods do what those of `BTreeMap` with their names do.
#[derive(Clone)]
pub struct Map<K, V> {
    index: crate::index::Index,
    slots: Vec<Option<(K, V)>>,
}

const TAKEN: &str = "a slot that a key leads to has it";

#[expect(missing_docs, reason = "they are the standard library's")]
impl<K, V> Map<K, V> {
    pub const fn new() -> Self {
        Self { index: crate::index::Index::new(), slots: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn at(&self, slot: usize) -> (&K, &V) {
        let (key, value) = self.slots[slot].as_ref().expect(TAKEN);
        (key, value)
    }

    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { map: self, slots: self.index.all() }
    }

    pub fn iter_mut(&mut self) -> alloc::vec::IntoIter<(&K, &mut V)> {
        // In order of the keys, which is not that of the slots.
        let mut slots: Vec<_> = self.slots.iter_mut().map(Option::as_mut).collect();
        let mut pair = |slot: usize| slots[slot].take().map(|(key, value)| (&*key, value)).expect(TAKEN);
        self.index.all().map(&mut pair).collect::<Vec<_>>().into_iter()
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.iter().map(|(_, value)| value)
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> {
        self.into_iter().map(|(_, value)| value)
    }

    pub fn first_key_value(&self) -> Option<(&K, &V)> {
        self.index.end(false).map(|slot| self.at(slot))
    }

    pub fn last_key_value(&self) -> Option<(&K, &V)> {
        self.index.end(true).map(|slot| self.at(slot))
    }
}

#[expect(missing_docs, reason = "they are the standard library's")]
impl<K: Key, V> Map<K, V> {
    pub fn get(&self, key: &K) -> Option<&V> {
        self.index.find(key.bits()).map(|slot| self.at(slot).1)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let slot = self.index.find_again(key.bits())?;
        Some(&mut self.slots[slot].as_mut().expect(TAKEN).1)
    }

    pub fn contains_key(&self, key: &K) -> bool {
        self.index.find(key.bits()).is_some()
    }

    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (slot, known) = self.index.put(key.bits(), self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        let before = self.slots[slot].replace((key, value));
        debug_assert_eq!(known, before.is_some(), "a free slot is empty");
        before.map(|(_, value)| value)
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.remove_entry(key).map(|(_, value)| value)
    }

    pub fn remove_entry(&mut self, key: &K) -> Option<(K, V)> {
        let slot = self.index.remove(key.bits())?;
        self.slots[slot].take()
    }

    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        Entry { map: self, key }
    }

    pub fn range(&self, keys: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> + Clone {
        let bits = |bound: Bound<&K>| bound.map(|key| key.bits());
        self.index.range(bits(keys.start_bound()), bits(keys.end_bound())).map(|slot| self.at(slot))
    }

    pub fn pop_first(&mut self) -> Option<(K, V)> {
        let (key, _) = self.first_key_value()?;
        self.remove_entry(&key.clone())
    }

    pub fn pop_last(&mut self) -> Option<(K, V)> {
        let (key, _) = self.last_key_value()?;
        self.remove_entry(&key.clone())
    }

    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        let gone: Vec<K> =
            self.iter_mut().filter_map(|(key, value)| (!keeps(key, value)).then_some(*key)).collect();
        for key in gone {
            self.remove(&key);
        }
    }
}

/// Walks through a map.
pub struct Iter<'a, K, V> {
    map: &'a Map<K, V>,
    slots: crate::index::All<'a>,
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { map: self.map, slots: self.slots.clone() }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        self.slots.next().map(|slot| self.map.at(slot))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for Iter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.slots.next_back().map(|slot| self.map.at(slot))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

/// The slot of a key in a map, whether it is there or not.
pub struct Entry<'a, K, V> {
    map: &'a mut Map<K, V>,
    key: K,
}

#[expect(missing_docs, reason = "they are the standard library's")]
impl<'a, K: Key, V> Entry<'a, K, V> {
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'a mut V {
        let Self { map, key } = self;
        let slot = match map.index.find_again(key.bits()) {
            Some(slot) => slot,
            None => {
                // What makes the value may not see the map, but it may panic: first it, then the slot.
                let value = value();
                map.insert(key, value);
                map.index.find(key.bits()).expect(TAKEN)
            }
        };
        &mut map.slots[slot].as_mut().expect(TAKEN).1
    }

    pub fn or_insert(self, value: V) -> &'a mut V {
        self.or_insert_with(|| value)
    }

    pub fn or_default(self) -> &'a mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key, V> Index<&K> for Map<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the key is there")
    }
}

impl<K: Key, V> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, pairs: I) {
        for (key, value) in pairs {
            self.insert(key, value);
        }
    }
}

impl<K: Key, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut map = Self::default();
        map.extend(pairs);
        map
    }
}

impl<K: Key, V, const N: usize> From<[(K, V); N]> for Map<K, V> {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<K, V> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = alloc::vec::IntoIter<(K, V)>;

    fn into_iter(mut self) -> Self::IntoIter {
        let pairs: Vec<_> = self.index.all().map(|slot| self.slots[slot].take().expect(TAKEN)).collect();
        pairs.into_iter()
    }
}

impl<'a, K, V> IntoIterator for &'a Map<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, K, V> IntoIterator for &'a mut Map<K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = alloc::vec::IntoIter<(&'a K, &'a mut V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for Map<K, V> {}

impl<K: PartialOrd, V: PartialOrd> PartialOrd for Map<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other)
    }
}

impl<K: Ord, V: Ord> Ord for Map<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other)
    }
}

impl<K: Hash, V: Hash> Hash for Map<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        self.iter().for_each(|pair| pair.hash(state));
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
