//! All that is in a store: bucket by bucket, or at one moment.

use std::time::{Duration, Instant};

use rackmem::{BytesReadGuard, NodeHandle};

use super::{LockedStore, bucket};
use crate::kv::Error;

/// A key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

impl LockedStore {
    /// In how many buckets its keys are.
    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// What is in a bucket, at one moment. None: its lock was not to be had in that time.
    ///
    /// # Errors
    /// If the rack's memory fails.
    ///
    /// # Panics
    /// If there is no such bucket.
    pub fn records(
        &self,
        handle: &mut NodeHandle,
        bucket: usize,
        most: Duration,
    ) -> Result<Option<Vec<Record>>, Error> {
        let Some(first) = self.buckets[bucket].read_timeout(handle, most)? else { return Ok(None) };
        let mut records = Vec::new();
        self.add_records(handle, &first, &mut records)?;
        Ok(Some(records))
    }

    /// All that is in the store, at one moment: whoever changes something waits while the locks of all buckets are held to read. None: they
    /// were not to be had in that time, or their buckets take more than so many bytes. (The node of this handle has copies of all of them
    /// at once.)
    ///
    /// # Errors
    /// If the rack's memory fails.
    pub fn records_at_once(
        &self,
        handle: &mut NodeHandle,
        most: Duration,
        most_bytes: usize,
    ) -> Result<Option<Vec<Record>>, Error> {
        if self.buckets.len().saturating_mul(self.bucket_bytes) > most_bytes {
            return Ok(None);
        }
        let until = Instant::now() + most;
        let mut guards = Vec::with_capacity(self.buckets.len());
        // Whoever writes holds one of these locks, and never waits for another one of them: nobody waits in a circle.
        for bucket in self.buckets.iter() {
            let left = until.saturating_duration_since(Instant::now());
            let Some(guard) = bucket.read_timeout(handle, left)? else { return Ok(None) };
            guards.push(guard);
        }
        let mut records = Vec::new();
        for guard in guards {
            // From the first one that is released on, writers go on: what is behind it is held still.
            self.add_records(handle, &guard, &mut records)?;
        }
        Ok(Some(records))
    }

    /// Adds what is in a bucket that is held, and in those in which it goes on.
    fn add_records(
        &self,
        handle: &mut NodeHandle,
        first: &BytesReadGuard<'_>,
        records: &mut Vec<Record>,
    ) -> Result<(), Error> {
        let mut add = |bytes: &[u8]| {
            records.extend(bucket::records(bytes).map(|(key, value)| (key.to_vec(), value.to_vec())));
            bucket::next(bytes)
        };
        let mut next = add(first);
        while let Some(addr) = next {
            let further = self.further(handle, addr)?;
            next = add(&further.read(handle)?);
        }
        Ok(())
    }
}
