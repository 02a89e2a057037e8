//! The index, and what can be done with a key.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::MappedStore;
use super::layout::{GROUP, Layout};
use super::slot::{Slot, Writing};
use crate::kv::Error;
use crate::kv::hash::KeyHash;

/// The lowest bit of each of a word's tags.
const LOWEST: u64 = 0x0001_0001_0001_0001;
const TAG_BITS: u32 = 16;

/// The highest bits of those tags that are 0.
#[inline]
const fn zeroes(tags: u64) -> u64 {
    const HIGHEST: u64 = LOWEST << (TAG_BITS - 1);
    !(((tags & !HIGHEST) + !HIGHEST) | tags) & HIGHEST
}

/// A search for a key, group of slots by group of slots.
pub(super) struct Probe<'a> {
    index: &'a [AtomicU64],
    /// The key's tag.
    tag: u64,
    at: usize,
    /// Groups that were looked at before this one.
    passed: usize,
    /// The tags of the group, and which of those equal to the key's have not been looked at.
    tags: u64,
    equal: u64,
}

impl<'a> Probe<'a> {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the hash's low bits are independent of where it points"
    )]
    pub(super) fn new(index: &'a [AtomicU64], hash: KeyHash) -> Self {
        let tag = u64::from((hash.bits() as u16).max(1));
        let at = hash.below(index.len() as u64) as usize;
        let mut probe = Self { index, tag, at, passed: 0, tags: 0, equal: 0 };
        probe.look();
        probe
    }

    #[inline]
    fn look(&mut self) {
        self.tags = self.index[self.at].load(Acquire);
        self.equal = zeroes(self.tags ^ (self.tag * LOWEST));
    }

    /// The next slot that may be the key's. None: there is none, and, with `claim`, none is free either. Otherwise
    /// that claims a free slot for the key before it gives up.
    #[inline]
    pub(super) fn next(&mut self, claim: bool) -> Option<u64> {
        loop {
            if self.equal != 0 {
                let slot = self.at as u64 * GROUP + u64::from(self.equal.trailing_zeros() / TAG_BITS);
                self.equal &= self.equal - 1;
                return Some(slot);
            }
            let free = zeroes(self.tags);
            if free == 0 {
                self.passed += 1;
                if self.passed == self.index.len() {
                    return None;
                }
                self.at = if self.at + 1 == self.index.len() { 0 } else { self.at + 1 };
            } else if claim {
                let claimed = self.tags | self.tag << (free.trailing_zeros() / TAG_BITS * TAG_BITS);
                // Whether or not somebody else was first: what is in the group now is looked at.
                let _ = self.index[self.at].compare_exchange(self.tags, claimed, AcqRel, Relaxed);
            } else {
                return None;
            }
            self.look();
        }
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
        while let Some(slot) = probe.next(false) {
            let slot = self.slot(slot);
            slot.ask();
            if let Some(present) = slot.read(key, value, self.longest_write)? {
                return Ok(present);
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

    /// Changes the value of `key`; what it becomes is in `value` then. False if the key is absent. `change` runs once
    /// at most, while others wait for the key.
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
        let writing = self.lock(key, true)?.ok_or(Error::Full { slots: self.layout.slots })?;
        let present = writing.len().is_some();
        if replace || !present {
            writing.set(Some(value));
        }
        Ok(present)
    }

    fn check(&self, value: &[u8]) -> Result<(), Error> {
        let (len, most) = (value.len(), self.layout.value_bytes);
        if len > most { Err(Error::ValueTooLong { len, most }) } else { Ok(()) }
    }

    #[inline]
    fn probe(&self, key: &[u8]) -> Result<Probe<'_>, Error> {
        let (len, most) = (key.len(), self.layout.key_bytes);
        if len > most {
            return Err(Error::KeyTooLong { len, most });
        }
        let index = &self.memory.as_ref()[Layout::index()..][..self.layout.groups() as usize];
        Ok(Probe::new(index, KeyHash::of(key, self.layout.salt)))
    }

    #[inline]
    fn slot(&self, slot: u64) -> Slot<'_> {
        let words = &self.memory.as_ref()[self.places.of(slot)..][..self.layout.slot_words() as usize];
        Slot { words, value: self.layout.value() }
    }

    /// The slot of a key, to be written. None: there is none, or, with `claim`, no slot is free for it.
    fn lock(&self, key: &[u8], claim: bool) -> Result<Option<Writing<'_>>, Error> {
        let mut probe = self.probe(key)?;
        while let Some(slot) = probe.next(claim) {
            // Other keys have the same tag so rarely that it does not matter whether theirs are locked for a moment.
            let writing = self.slot(slot).lock(self.node, self.longest_write)?;
            writing.take(key);
            if writing.has(key) {
                return Ok(Some(writing));
            }
        }
        Ok(None)
    }

    /// The slot of a key that is present, and the length of its value.
    pub(super) fn lock_present(&self, key: &[u8]) -> Result<Option<(Writing<'_>, usize)>, Error> {
        let writing = self.lock(key, false)?;
        Ok(writing.and_then(|writing| writing.len().map(|len| (writing, len))))
    }
}
