//! The index, and what can be done with a key.

use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::layout::{Layout, NEXT};
use super::slot::{Slot, Writing};
use super::{Error, MappedStore};
use crate::kv::hash::KeyHash;

/// The entries of a key, one after the other.
struct Probe<'a> {
    index: &'a [AtomicU64],
    at: usize,
    /// The low half of the hash.
    tag: u32,
}

impl Probe<'_> {
    /// The line of the next slot whose key may be this one. None: `at` is the free entry behind all of them.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an entry's low half")]
    fn next(&mut self) -> Option<u64> {
        loop {
            let entry = self.index[self.at].load(Acquire);
            if entry == 0 {
                return None;
            }
            self.at = if self.at + 1 == self.index.len() { 0 } else { self.at + 1 };
            if entry as u32 == self.tag {
                return Some(entry >> 32);
            }
        }
    }

    /// Sets the free entry. False: somebody else has.
    fn set(&self, line: u64) -> bool {
        let entry = line << 32 | u64::from(self.tag);
        self.index[self.at].compare_exchange(0, entry, Release, Relaxed).is_ok()
    }
}

impl<M: AsRef<[AtomicU64]>> MappedStore<M> {
    /// Copies the value of `key` into `value`. False if the key is absent; `value` is empty then.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::Abandoned`].
    #[inline]
    pub fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let mut probe = self.probe(key)?;
        while let Some(line) = probe.next() {
            let slot = self.slot(line);
            if slot.has(key) {
                return slot.read(value, self.patience);
            }
        }
        value.clear();
        Ok(false)
    }

    /// Sets the value of `key`. True if the key was present.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::Full`], [`Error::Abandoned`].
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.set(key, value, true)
    }

    /// Sets the value of `key` if it is absent. True if it was.
    ///
    /// # Errors
    /// As [`MappedStore::put`].
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(!self.set(key, value, false)?)
    }

    /// Removes `key`. False if it was absent.
    ///
    /// # Errors
    /// As [`MappedStore::get`].
    pub fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        let Some((writing, _)) = self.lock_present(key)? else { return Ok(false) };
        writing.set(None);
        Ok(true)
    }

    /// Overwrites a part of the value of `key`. False if the key is absent.
    ///
    /// # Errors
    /// [`Error::OutsideValue`]; as [`MappedStore::get`].
    pub fn update_in_place(&self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<bool, Error> {
        let Some((writing, value)) = self.lock_present(key)? else { return Ok(false) };
        if offset.checked_add(bytes.len()).is_none_or(|end| end > value) {
            return Err(Error::OutsideValue { offset, len: bytes.len(), value });
        }
        writing.overwrite(value, offset, bytes);
        Ok(true)
    }

    /// Changes the value of `key`; what it becomes is in `value` then. False if the key is absent. `change` runs once at most, while
    /// others wait for the key.
    ///
    /// # Errors
    /// [`Error::ValueTooLong`]; as [`MappedStore::get`].
    pub fn read_modify_write(
        &self,
        key: &[u8],
        value: &mut Vec<u8>,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bool, Error> {
        value.clear();
        let Some((writing, _)) = self.lock_present(key)? else { return Ok(false) };
        writing.copy(value);
        change(value);
        self.check(value)?;
        writing.set(Some(value));
        Ok(true)
    }

    /// Sets the value, if the key is absent or what is there is to be replaced. True if the key was present.
    fn set(&self, key: &[u8], value: &[u8], replace: bool) -> Result<bool, Error> {
        self.check(value)?;
        let mut probe = self.probe(key)?;
        loop {
            if let Some(writing) = self.lock(&mut probe, key)? {
                let present = writing.len().is_some();
                if replace || !present {
                    writing.set(Some(value));
                }
                return Ok(present);
            }
            let spare = self.spare()?;
            let line = self.layout.line(spare);
            self.slot(line).fill(key, value);
            if probe.set(line) {
                return Ok(false);
            }
            // Somebody added a key there, perhaps this one.
            self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(spare);
        }
    }

    fn check(&self, value: &[u8]) -> Result<(), Error> {
        let (len, most) = (value.len(), self.layout.value_bytes);
        if len > most { Err(Error::ValueTooLong { len, most }) } else { Ok(()) }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half of a hash")]
    fn probe(&self, key: &[u8]) -> Result<Probe<'_>, Error> {
        let (len, most, entries) = (key.len(), self.layout.key_bytes, self.layout.entries());
        if len > most {
            return Err(Error::KeyTooLong { len, most });
        }
        let hash = KeyHash::of(key, self.layout.salt);
        let index = &self.memory.as_ref()[Layout::index()..][..entries as usize];
        Ok(Probe { index, at: hash.below(entries) as usize, tag: hash.bits() as u32 })
    }

    #[inline]
    fn slot(&self, line: u64) -> Slot<'_> {
        let words = &self.memory.as_ref()[Layout::word(line)..][..self.layout.slot_words() as usize];
        Slot { words, value: self.layout.value() }
    }

    /// The slot of a key, to be written. None: there is none, and the probe is at the free entry.
    fn lock<'a>(&'a self, probe: &mut Probe<'a>, key: &[u8]) -> Result<Option<Writing<'a>>, Error> {
        while let Some(line) = probe.next() {
            // Whose key is another one, has the same half of a hash: rare enough to disturb it.
            let writing = self.slot(line).lock(self.node, self.patience)?;
            if writing.has(key) {
                return Ok(Some(writing));
            }
        }
        Ok(None)
    }

    /// The slot of a key that is present, and the length of its value.
    pub(super) fn lock_present(&self, key: &[u8]) -> Result<Option<(Writing<'_>, usize)>, Error> {
        let writing = self.lock(&mut self.probe(key)?, key)?;
        Ok(writing.and_then(|writing| writing.len().map(|len| (writing, len))))
    }

    /// A slot that is in no entry.
    fn spare(&self) -> Result<u64, Error> {
        let (slots, at_once) = (self.layout.slots, self.layout.at_once());
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.is_empty() {
            let first = self.memory.as_ref()[NEXT].fetch_add(at_once, Relaxed);
            spare.extend((first..slots.min(first.saturating_add(at_once))).rev());
        }
        spare.pop().ok_or(Error::Full { slots })
    }
}
