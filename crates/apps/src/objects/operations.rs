//! What can be done with a key.

use std::hint::spin_loop;
use std::thread;
use std::time::{Duration, Instant};

use rackmem::NodeHandle;

use super::bucket;
use super::chain::Chain;
use super::layout::Versioned;
use super::{Error, ObjectStore};

/// Attempts between which a reader only waits a moment; after as many it lets others run.
const QUICK: u64 = 16;
/// Attempts after which somebody looks at the clock.
const MANY: u64 = 1 << 12;
/// How long a bucket may be in the hands of one writer after another.
const TIMEOUT: Duration = Duration::from_secs(30);

impl<L: Versioned> ObjectStore<L> {
    /// Copies the value of `key` into `value`. False if the key is absent; `value` is empty then.
    ///
    /// # Errors
    /// If the key is too long, or the rack's memory fails.
    #[inline]
    pub fn get(&mut self, node: &mut NodeHandle, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        value.clear();
        let (part, index) = self.locate(key)?;
        self.read_bucket(node, part, index)?;
        if let Some(slot) = self.form.find(&self.bucket, key) {
            value.extend_from_slice(self.form.value(&self.bucket, slot));
            return Ok(true);
        }
        if bucket::next(&self.bucket).is_none() { Ok(false) } else { self.get_further(node, key, value) }
    }

    /// It is not where it should be.
    #[cold]
    #[inline(never)]
    fn get_further(&mut self, node: &mut NodeHandle, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let (part, index) = self.locate(key)?;
        'again: loop {
            loop {
                if let Some(slot) = self.form.find(&self.bucket, key) {
                    value.extend_from_slice(self.form.value(&self.bucket, slot));
                    return Ok(true);
                }
                let Some(next) = bucket::next(&self.bucket) else { return Ok(false) };
                if !self.read_further(node, part, next)? {
                    self.read_bucket(node, part, index)?;
                    continue 'again;
                }
            }
        }
    }

    /// Sets the value of `key`. True if the key was present.
    ///
    /// # Errors
    /// If the key or the value is too long, or the rack's memory fails or is full.
    pub fn put(&mut self, node: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let location = self.locate(key)?;
        self.check_value(value)?;
        loop {
            let chain = Chain::read(self, node, location)?;
            let at = chain.find(self, key);
            if chain.set(self, node, at, (key, value))? {
                return Ok(at.is_some());
            }
        }
    }

    /// Sets the value of `key`, which is absent. False if it is present: then nothing changes.
    ///
    /// # Errors
    /// As for [`ObjectStore::put`].
    pub fn insert(&mut self, node: &mut NodeHandle, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let location = self.locate(key)?;
        self.check_value(value)?;
        loop {
            let chain = Chain::read(self, node, location)?;
            if chain.find(self, key).is_some() {
                return Ok(false);
            }
            if chain.set(self, node, None, (key, value))? {
                return Ok(true);
            }
        }
    }

    /// Sets the value of `key` to `new`, if it is `old`. False if it is another one, or absent.
    ///
    /// # Errors
    /// As for [`ObjectStore::put`].
    pub fn replace(
        &mut self,
        node: &mut NodeHandle,
        key: &[u8],
        (old, new): (&[u8], &[u8]),
    ) -> Result<bool, Error> {
        let location = self.locate(key)?;
        self.check_value(new)?;
        loop {
            let chain = Chain::read(self, node, location)?;
            let at = chain.find(self, key).filter(|at| chain.value(self, *at) == old);
            let Some(at) = at else { return Ok(false) };
            if chain.set(self, node, Some(at), (key, new))? {
                return Ok(true);
            }
        }
    }

    /// Removes `key`. False if it was absent.
    ///
    /// # Errors
    /// If the key is too long, or the rack's memory fails or is full.
    pub fn delete(&mut self, node: &mut NodeHandle, key: &[u8]) -> Result<bool, Error> {
        let location = self.locate(key)?;
        loop {
            let chain = Chain::read(self, node, location)?;
            let Some(at) = chain.find(self, key) else { return Ok(false) };
            if chain.remove(self, node, at)? {
                return Ok(true);
            }
        }
    }

    /// Changes the value of `key`. False if it is absent, and then `change` is not called. `value` is the buffer for
    /// that, and afterwards what the value is. If somebody else was faster, `change` is called again, with what it is then.
    ///
    /// # Errors
    /// If the key or the new value is too long, or the rack's memory fails or is full.
    pub fn update(
        &mut self,
        node: &mut NodeHandle,
        key: &[u8],
        value: &mut Vec<u8>,
        mut change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool, Error> {
        let location = self.locate(key)?;
        loop {
            value.clear();
            let chain = Chain::read(self, node, location)?;
            let Some(at) = chain.find(self, key) else { return Ok(false) };
            value.extend_from_slice(chain.value(self, at));
            change(value);
            self.check_value(value)?;
            if chain.set(self, node, Some(at), (key, value))? {
                return Ok(true);
            }
        }
    }

    fn check_value(&self, value: &[u8]) -> Result<(), Error> {
        let most = self.form.value_bytes;
        if value.len() <= most { Ok(()) } else { Err(Error::ValueTooLong { len: value.len(), most }) }
    }

    /// Reads a bucket whole; its version.
    #[inline]
    pub(super) fn read_bucket(
        &mut self,
        node: &mut NodeHandle,
        part: usize,
        index: usize,
    ) -> Result<u64, Error> {
        let Self { parts, bucket, raw, .. } = self;
        match parts[part].buckets.try_read(node, index, bucket, raw)? {
            Some(version) => Ok(version),
            None => self.read_bucket_again(node, part, index),
        }
    }

    /// Somebody was writing.
    #[cold]
    #[inline(never)]
    fn read_bucket_again(&mut self, node: &mut NodeHandle, part: usize, index: usize) -> Result<u64, Error> {
        let mut attempts = 1;
        let mut late = None;
        loop {
            if attempts % QUICK == 0 {
                thread::yield_now()
            } else {
                spin_loop()
            }
            let Self { parts, bucket, raw, .. } = &mut *self;
            if let Some(version) = parts[part].buckets.try_read(node, index, bucket, raw)? {
                return Ok(version);
            }
            attempts += 1;
            if attempts % MANY == 0 && Instant::now() > *late.get_or_insert_with(|| Instant::now() + TIMEOUT)
            {
                return Err(Error::Stuck { home: self.home(part), bucket: index });
            }
        }
    }
}
