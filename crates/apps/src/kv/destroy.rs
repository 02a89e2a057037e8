//! The end of a store.

use rackmem::Memory;

use super::bucket::{CHILDREN, Snapshot};
use super::retry::free;
use super::{Error, KvStore};

impl KvStore {
    /// Gives back all memory of the store, records included. Nobody may use the store any more, by this
    /// handle or another one: no operation may be in flight, and none may follow.
    ///
    /// # Errors
    /// If the rack's memory fails; what was not freed until then stays allocated.
    pub async fn destroy<M: Memory>(self, mem: &mut M) -> Result<(), Error> {
        let geometry = self.geometry;
        for index in 0..self.buckets {
            // Inner buckets whose children are still to be visited are few: the path, and its siblings.
            let mut pending = vec![self.bucket_at(index)];
            let mut split = Vec::new();
            while let Some(addr) = pending.pop() {
                let bucket = mem.inspect(addr, geometry.bytes(), |w| Snapshot::of(w, geometry)).await?;
                if let Some(children) = bucket.children() {
                    let bytes = geometry.bytes() as u64;
                    pending.extend((0..CHILDREN).map(|child| children + child * bytes));
                    split.push(children);
                    continue;
                }
                for entry in bucket.entries() {
                    free(mem, entry.addr).await?;
                }
            }
            for children in split {
                free(mem, children).await?;
            }
        }
        for piece in self.pieces.iter() {
            free(mem, *piece).await?;
        }
        free(mem, self.root).await
    }
}
