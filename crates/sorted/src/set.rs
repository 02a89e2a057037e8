//! Sets.

use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeBounds;

use crate::{Key, Map};

/// A set in order. Methods do what those of `BTreeSet` with their names do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Set<K>(Map<K, ()>);

#[expect(missing_docs, reason = "they are the standard library's")]
impl<K> Set<K> {
    pub const fn new() -> Self {
        Self(Map::new())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.0.keys()
    }

    pub fn first(&self) -> Option<&K> {
        self.0.first_key_value().map(|(key, ())| key)
    }

    pub fn last(&self) -> Option<&K> {
        self.0.last_key_value().map(|(key, ())| key)
    }
}

#[expect(missing_docs, reason = "they are the standard library's")]
impl<K: Key> Set<K> {
    pub fn contains(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ()).is_none()
    }

    pub fn remove(&mut self, key: &K) -> bool {
        self.0.remove(key).is_some()
    }

    pub fn range(&self, keys: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = &K> + Clone {
        self.0.range(keys).map(|(key, ())| key)
    }

    pub fn pop_first(&mut self) -> Option<K> {
        self.0.pop_first().map(|(key, ())| key)
    }

    pub fn pop_last(&mut self) -> Option<K> {
        self.0.pop_last().map(|(key, ())| key)
    }

    pub fn retain(&mut self, mut keeps: impl FnMut(&K) -> bool) {
        self.0.retain(|key, ()| keeps(key));
    }
}

impl<K> Default for Set<K> {
    fn default() -> Self {
        Self(Map::default())
    }
}

impl<K> IntoIterator for Set<K> {
    type Item = K;
    type IntoIter = alloc::vec::IntoIter<K>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().map(|(key, ())| key).collect::<Vec<_>>().into_iter()
    }
}

impl<K: Key> Extend<K> for Set<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.0.extend(keys.into_iter().map(|key| (key, ())));
    }
}

impl<K: Key> FromIterator<K> for Set<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        Self(keys.into_iter().map(|key| (key, ())).collect())
    }
}

impl<K: Key, const N: usize> From<[K; N]> for Set<K> {
    fn from(keys: [K; N]) -> Self {
        keys.into_iter().collect()
    }
}

impl<K: fmt::Debug> fmt::Debug for Set<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
