//! New records, until they are published.

use rackmem::{Discipline, Memory, NodeId, Window};

use super::bucket::Entry;
use super::hash::KeyHash;
use super::record::{self, Examined, HEADER, LONGEST_VALUE, Shape};
use super::retry::{free, unless_freed};
use super::{Error, KvStore, Placement};

/// A record that no entry leads to yet. Its key and value are written, its header is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Draft {
    pub(super) addr: rackmem::GlobalAddr,
    shape: Shape,
}

/// What became of an attempt to forward a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Forwarding {
    /// The successor holds the key's value now, and was published by that.
    Done,
    /// The record is not what it was: scan again.
    Outdated,
}

impl KvStore {
    /// Allocates a record and writes its key and value.
    pub(super) async fn draft<M: Memory>(
        &self,
        mem: &mut M,
        hash: KeyHash,
        key: &[u8],
        value: &[u8],
    ) -> Result<Draft, Error> {
        if value.len() > LONGEST_VALUE {
            return Err(Error::ValueTooLong { len: value.len(), most: LONGEST_VALUE });
        }
        let shape = Shape::new(key.len(), value.len(), self.block);
        let addr = self.allocate_near(mem, hash, shape.allocation()).await?;
        if shape.is_small() {
            let fill = |w: &Window<'_>| {
                w.write(HEADER, key);
                w.write(shape.value_at(), value);
            };
            mem.update(addr, shape.room, fill).await?;
        } else {
            mem.write(addr + HEADER as u64, key).await?;
            mem.write(addr + shape.value_at() as u64, value).await?;
        }
        Ok(Draft { addr, shape })
    }

    /// Allocates at the record's home, or, if that is full, at the next node that is not.
    async fn allocate_near<M: Memory>(
        &self,
        mem: &mut M,
        hash: KeyHash,
        len: u64,
    ) -> Result<rackmem::GlobalAddr, Error> {
        let nodes = self.homes(mem);
        let home = match self.placement {
            Placement::Spread => hash.home(nodes.into()),
            Placement::Local => NodeId(mem.node().0 % nodes),
        };
        let mut full = None;
        for further in 0..nodes {
            // Of a store that has copies all memory has some, whoever adds to it.
            let node = mem.memory_like(self.root, NodeId((home.0 + further) % nodes));
            match mem.alloc(len, node, Discipline::Coherent).await {
                Err(error @ rackmem::Error::OutOfMemory { .. }) => full = full.or(Some(error)),
                other => return Ok(other?),
            }
        }
        Err(full.expect("a rack has a node").into())
    }

    /// Makes a draft a live record with this id, ready to be published.
    pub(super) async fn finish<M: Memory>(
        &self,
        mem: &mut M,
        draft: Draft,
        entry: Entry,
    ) -> Result<(), Error> {
        Ok(mem.write(draft.addr, &draft.shape.live_header(self.seal(entry))).await?)
    }

    /// Forwards the live record of `key` in `old` to `new`, if `unchanged` approves of what is in it.
    pub(super) async fn forward<M: Memory>(
        &self,
        mem: &mut M,
        key: &[u8],
        old: Entry,
        new: Entry,
        unchanged: impl FnOnce(&Window<'_>, Shape) -> bool,
    ) -> Result<Forwarding, Error> {
        let seal = self.seal(old);
        let forward = |w: &Window<'_>| match record::examine(w, seal, key) {
            Examined::Live(shape) if unchanged(w, shape) => {
                record::forward(w, new);
                Forwarding::Done
            }
            _ => Forwarding::Outdated,
        };
        // Freed meanwhile: the scan that follows finds out why.
        let freed = Forwarding::Outdated;
        Ok(unless_freed(mem.update(old.addr, self.window(old.addr), forward).await)?.unwrap_or(freed))
    }

    /// After `old` was forwarded to `new`: swings the entry and frees the old record.
    pub(super) async fn retire<M: Memory>(
        &self,
        mem: &mut M,
        hash: KeyHash,
        old: Entry,
        new: Entry,
    ) -> Result<(), Error> {
        self.swing(mem, hash, old, new).await?;
        free(mem, old.addr).await
    }
}
