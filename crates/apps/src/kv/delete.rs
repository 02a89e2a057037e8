//! Removing a key.

use rackmem::{Memory, Window};

use super::record::{self, Examined};
use super::retry::{Search, free, unless_freed};
use super::{Error, KvStore};

impl KvStore {
    /// Removes `key` and gives its memory back. False if it was absent.
    ///
    /// # Errors
    /// If the key is too long, or the rack's memory fails.
    pub async fn delete<M: Memory>(&self, mem: &mut M, key: &[u8]) -> Result<bool, Error> {
        let hash = self.hash(key)?;
        let mut search = Search::new(hash);
        loop {
            let (_, leaf) = self.scan(mem, &search).await?;
            let Some(entry) = leaf.entry else { return Ok(false) };
            let seal = self.seal(entry);
            let kill = |w: &Window<'_>| {
                let found = record::examine(w, seal, key);
                if let Examined::Live(shape) = found {
                    record::kill(w, shape);
                }
                found
            };
            let found = unless_freed(mem.update(entry.addr, self.window(entry.addr), kill).await)?;
            match found.unwrap_or(Examined::Stale) {
                Examined::Live(_) => {
                    self.unlink(mem, hash, entry).await?;
                    free(mem, entry.addr).await?;
                    return Ok(true);
                }
                Examined::Dead => return Ok(false),
                Examined::OtherKey => search.skip(entry),
                Examined::Forwarded(successor) => self.swing(mem, hash, entry, successor).await?,
                Examined::Stale | Examined::Longer => {
                    search.suspect(entry, found.err().unwrap_or(Error::Damaged { record: entry.addr }))?;
                }
            }
        }
    }
}
