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
    /// If the rack's memory fails, or a record is lost with it.
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
        let mut suspect = None;
        loop {
            // A record that is gone was replaced: its key may be there. But not if it is gone and its entry is still there (`Search`).
            match self.keys_now(mem, bucket).await? {
                Ok(keys) => return Ok((keys, next)),
                Err((gone, why)) if suspect == Some(gone) => return Err(why),
                Err((gone, _)) => suspect = Some(gone),
            }
        }
    }

    /// The keys, or the entry whose record was not there.
    async fn keys_now<M: Memory>(
        &self,
        mem: &mut M,
        bucket: u64,
    ) -> Result<Result<Vec<Vec<u8>>, (Entry, Error)>, Error> {
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
                    Ok(Some(key)) => keys.push(key),
                    Ok(None) => {}
                    Err(gone) => return Ok(Err((entry, gone))),
                }
            }
        }
        Ok(Ok(keys))
    }

    /// The key of a record, or of the last successor of it, unless it was deleted. The inner error is that it is not there.
    async fn name_of<M: Memory>(
        &self,
        mem: &mut M,
        mut entry: Entry,
    ) -> Result<Result<Option<Vec<u8>>, Error>, Error> {
        loop {
            let (seal, rest) = (self.seal(entry), self.window(entry.addr));
            let look = mem.inspect(entry.addr, rest, |w| record::named(w, seal)).await;
            match unless_freed(look)? {
                Ok(Named::Forwarded(successor)) => entry = successor,
                Ok(Named::Live(key)) => return Ok(Ok(Some(key))),
                Ok(Named::Dead) => return Ok(Ok(None)),
                Ok(Named::Stale) => return Ok(Err(Error::Damaged { record: entry.addr })),
                Err(freed) => return Ok(Err(freed)),
            }
        }
    }
}
