//! Listing keys.

use rackmem::Memory;

use super::bucket::{CHILDREN, Entry, Snapshot};
use super::record::{self, Named};
use super::retry::unless_freed;
use super::{Error, KvStore};

impl KvStore {
    /// The keys whose search begins at this bucket (the first one is 0), and which bucket is next; none after the last. A key that
    /// is there while all of them are listed is among them, once. One that comes or goes meanwhile may be.
    ///
    /// # Errors
    /// If the rack's memory fails.
    ///
    /// # Panics
    /// If there is no such bucket.
    pub async fn keys<M: Memory>(
        &self,
        mem: &mut M,
        bucket: u64,
    ) -> Result<(Vec<Vec<u8>>, Option<u64>), Error> {
        assert!(bucket < self.buckets, "bucket {bucket} of {}", self.buckets);
        let next = Some(bucket + 1).filter(|next| *next < self.buckets);
        loop {
            // A record that is gone was replaced: its key may be there.
            if let Some(keys) = self.keys_now(mem, bucket).await? {
                return Ok((keys, next));
            }
        }
    }

    async fn keys_now<M: Memory>(&self, mem: &mut M, bucket: u64) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let geometry = self.geometry;
        let (mut keys, mut pending) = (Vec::new(), vec![self.bucket_at(bucket)]);
        while let Some(addr) = pending.pop() {
            let found = mem.inspect(addr, geometry.bytes(), |w| Snapshot::of(w, geometry)).await?;
            if let Some(children) = found.children() {
                let bytes = geometry.bytes() as u64;
                pending.extend((0..CHILDREN).map(|child| children + child * bytes));
                continue;
            }
            for entry in found.entries() {
                match self.name_of(mem, entry).await? {
                    Named::Live(key) => keys.push(key),
                    Named::Dead => {}
                    _ => return Ok(None),
                }
            }
        }
        Ok(Some(keys))
    }

    /// Whose record it is, or the last successor of it.
    async fn name_of<M: Memory>(&self, mem: &mut M, mut entry: Entry) -> Result<Named, Error> {
        loop {
            let (seal, rest) = (self.seal(entry), self.window(entry.addr));
            let look = mem.inspect(entry.addr, rest, |w| record::named(w, seal)).await;
            match unless_freed(look)? {
                Ok(Named::Forwarded(successor)) => entry = successor,
                Ok(named) => return Ok(named),
                Err(_) => return Ok(Named::Stale),
            }
        }
    }
}
