//! What can be done with a key.

use rackmem::{BytesWriteGuard, Discipline, GlobalAddr, LockedBytes, NodeHandle, NodeId};

use super::LockedStore;
use super::bucket::{self, Location};
use crate::kv::Error;

/// A bucket of a chain, by its number in it.
enum At {
    First,
    Further(GlobalAddr),
}

impl LockedStore {
    /// Copies the value of `key` into `value`. False if the key is absent; `value` is empty then.
    ///
    /// # Errors
    /// If the key is too long, or the rack's memory fails.
    #[inline]
    pub fn get(&self, handle: &mut NodeHandle, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        value.clear();
        let first = self.bucket(key)?.read(handle)?;
        if let Some(location) = bucket::find(&first, key) {
            value.extend_from_slice(bucket::value(&first, location));
            return Ok(true);
        }
        let mut next = bucket::next(&first);
        while let Some(addr) = next {
            let further = self.further(handle, addr)?;
            let further = further.read(handle)?;
            if let Some(location) = bucket::find(&further, key) {
                value.extend_from_slice(bucket::value(&further, location));
                return Ok(true);
            }
            next = bucket::next(&further);
        }
        Ok(false)
    }

    /// Sets the value of `key`. True if the key was present.
    ///
    /// # Errors
    /// If the key or the value is too long, or the rack's memory fails or is full.
    pub fn put(&self, handle: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let mut chain = Chain::enter(self, handle, key)?;
        let found = chain.find(handle, key)?;
        chain.set(handle, key, value, found.as_ref())?;
        Ok(found.is_some())
    }

    /// Sets the value of `key` if it is absent. True if it was.
    ///
    /// # Errors
    /// As [`LockedStore::put`].
    pub fn insert(&self, handle: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let mut chain = Chain::enter(self, handle, key)?;
        let absent = chain.find(handle, key)?.is_none();
        if absent {
            chain.set(handle, key, value, None)?;
        }
        Ok(absent)
    }

    /// Removes `key`. False if it was absent.
    ///
    /// # Errors
    /// As [`LockedStore::get`].
    pub fn delete(&self, handle: &mut NodeHandle, key: &[u8]) -> Result<bool, Error> {
        let mut chain = Chain::enter(self, handle, key)?;
        let Some((at, location)) = chain.find(handle, key)? else { return Ok(false) };
        chain.on(handle, &at, |bytes| bucket::remove(bytes, location))?;
        Ok(true)
    }

    /// Overwrites a part of the value of `key`. False if the key is absent.
    ///
    /// # Errors
    /// If the bytes are not all inside the value, the key is too long, or the rack's memory fails.
    pub fn update_in_place(
        &self,
        handle: &mut NodeHandle,
        key: &[u8],
        offset: usize,
        bytes: &[u8],
    ) -> Result<bool, Error> {
        let mut chain = Chain::enter(self, handle, key)?;
        let Some((at, location)) = chain.find(handle, key)? else { return Ok(false) };
        chain.on(handle, &at, |all| {
            let value = bucket::value_mut(all, location);
            let len = value.len();
            let outside = Error::OutsideValue { offset, len: bytes.len(), value: len };
            let end = offset.checked_add(bytes.len()).filter(|end| *end <= len).ok_or(outside)?;
            value[offset..end].copy_from_slice(bytes);
            Ok(true)
        })?
    }

    /// Changes the value of `key`; what it becomes is in `value` then. False if the key is absent. `change` runs once at most.
    ///
    /// # Errors
    /// If the key or the new value is too long, or the rack's memory fails or is full.
    pub fn read_modify_write(
        &self,
        handle: &mut NodeHandle,
        key: &[u8],
        value: &mut Vec<u8>,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bool, Error> {
        value.clear();
        let mut chain = Chain::enter(self, handle, key)?;
        let Some(found) = chain.find(handle, key)? else { return Ok(false) };
        chain.on(handle, &found.0, |bytes| value.extend_from_slice(bucket::value(bytes, found.1)))?;
        change(value);
        chain.set(handle, key, value, Some(&found))?;
        Ok(true)
    }

    /// Gives the store's memory back. Whoever still works on it is refused.
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub fn destroy(self, handle: &mut NodeHandle) -> Result<(), Error> {
        handle.write_word(self.root, 0)?;
        for first in self.buckets.iter() {
            let mut next = bucket::next(&first.write(handle)?);
            while let Some(addr) = next {
                let further = self.further(handle, addr)?;
                next = bucket::next(&further.read(handle)?);
                further.free(handle)?;
            }
            first.clone().end(handle)?;
        }
        let nodes = handle.nodes();
        for piece in self.buckets.iter().take(nodes) {
            handle.free(piece.addr())?;
        }
        Ok(handle.free(self.root)?)
    }

    pub(super) fn further(&self, handle: &NodeHandle, addr: GlobalAddr) -> Result<LockedBytes, Error> {
        Ok(handle.rwlock(addr, self.bucket_bytes)?)
    }
}

/// The buckets of a key, for the one who changes something in them.
struct Chain<'a> {
    store: &'a LockedStore,
    /// Where the first one is at home.
    home: NodeId,
    first: BytesWriteGuard<'a>,
}

type Found = (At, Location);

impl<'a> Chain<'a> {
    fn enter(store: &'a LockedStore, handle: &mut NodeHandle, key: &[u8]) -> Result<Self, Error> {
        let first = store.bucket(key)?;
        Ok(Self { store, home: first.addr().home(), first: first.write(handle)? })
    }

    /// Does something with one of the buckets.
    fn on<R>(
        &mut self,
        handle: &mut NodeHandle,
        at: &At,
        work: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, Error> {
        match at {
            At::First => Ok(work(&mut self.first)),
            At::Further(addr) => {
                let further = self.store.further(handle, *addr)?;
                let result = work(&mut further.write(handle)?);
                Ok(result)
            }
        }
    }

    /// Goes along the chain until something is found.
    fn look<R>(
        &mut self,
        handle: &mut NodeHandle,
        mut each: impl FnMut(&[u8]) -> Option<R>,
    ) -> Result<Result<(At, R), At>, Error> {
        let mut at = At::First;
        loop {
            let (found, next) = self.on(handle, &at, |bytes| (each(bytes), bucket::next(bytes)))?;
            match (found, next) {
                (Some(found), _) => return Ok(Ok((at, found))),
                (None, Some(next)) => at = At::Further(next),
                (None, None) => return Ok(Err(at)),
            }
        }
    }

    fn find(&mut self, handle: &mut NodeHandle, key: &[u8]) -> Result<Option<Found>, Error> {
        Ok(self.look(handle, |bytes| bucket::find(bytes, key))?.ok())
    }

    /// Sets the value of a key that was found there. Fails before anything is changed, or not at all.
    fn set(
        &mut self,
        handle: &mut NodeHandle,
        key: &[u8],
        value: &[u8],
        found: Option<&Found>,
    ) -> Result<(), Error> {
        let most = self.store.most_record() - key.len();
        if value.len() > most {
            return Err(Error::ValueTooLong { len: value.len(), most });
        }
        let needed = bucket::record_bytes(key.len(), value.len());
        if let Some((at, location)) = found {
            let fits = self.on(handle, at, |bytes| {
                if bucket::value(bytes, *location).len() == value.len() {
                    bucket::value_mut(bytes, *location).copy_from_slice(value);
                    return true;
                }
                let fits = bucket::room(bytes) + location.bytes() >= needed;
                if fits {
                    bucket::remove(bytes, *location);
                    bucket::add(bytes, key, value);
                }
                fits
            })?;
            if fits {
                return Ok(());
            }
        }
        let at = match self.look(handle, |bytes| (bucket::room(bytes) >= needed).then_some(()))? {
            Ok((at, ())) => at,
            Err(last) => self.go_on(handle, &last)?,
        };
        self.on(handle, &at, |bytes| bucket::add(bytes, key, value))?;
        if let Some((old, location)) = found {
            // Records in front of the new one stay where they are: the location is still right.
            self.on(handle, old, |bytes| bucket::remove(bytes, *location))?;
        }
        Ok(())
    }

    /// Adds a bucket behind the last one.
    fn go_on(&mut self, handle: &mut NodeHandle, last: &At) -> Result<At, Error> {
        let len = self.store.bucket_bytes;
        let addr = handle.alloc(len as u64, self.home, Discipline::Locked)?;
        bucket::clear(&mut self.store.further(handle, addr)?.write(handle)?);
        self.on(handle, last, |bytes| bucket::set_next(bytes, addr))?;
        Ok(At::Further(addr))
    }
}
