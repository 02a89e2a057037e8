//! The way from a key to its leaf, and changes of leaves.

use rackmem::{Discipline, GlobalAddr, Memory, Window};

use super::bucket::{self, Changed, DEEPEST, Entry, Leaf, Scan, Snapshot};
use super::hash::KeyHash;
use super::retry::Search;
use super::{Error, KvStore};

/// Where a leaf was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LeafLocation {
    pub(super) addr: GlobalAddr,
    /// Inner buckets on the way to it.
    pub(super) depth: u32,
}

impl KvStore {
    /// Looks for the entry of a key.
    #[inline]
    pub(super) async fn scan<M: Memory>(
        &self,
        mem: &mut M,
        search: &Search,
    ) -> Result<(LeafLocation, Leaf), Error> {
        let (geometry, tag) = (self.geometry, search.hash.tag());
        let mut location = LeafLocation { addr: self.bucket(search.hash), depth: 0 };
        loop {
            let look = |w: &Window<'_>| bucket::scan(w, geometry, tag, search.others());
            match mem.inspect(location.addr, geometry.bytes(), look).await? {
                Scan::Leaf(leaf) => return Ok((location, leaf)),
                Scan::Inner { children } => {
                    location.addr = geometry.child(children, tag, location.depth);
                    location.depth += 1;
                }
            }
        }
    }

    /// Links a new record; see [`bucket::link`].
    pub(super) async fn link<M: Memory>(
        &self,
        mem: &mut M,
        location: LeafLocation,
        seen: &Leaf,
        dead: Option<Entry>,
        new: Entry,
    ) -> Result<Changed, Error> {
        let geometry = self.geometry;
        let link = |w: &Window<'_>| bucket::link(w, geometry, seen, dead, new);
        Ok(mem.update(location.addr, geometry.bytes(), link).await?)
    }

    /// Lets a key's entry point from a forwarded record to its successor, if nobody did that yet.
    pub(super) async fn swing<M: Memory>(
        &self,
        mem: &mut M,
        hash: KeyHash,
        old: Entry,
        new: Entry,
    ) -> Result<(), Error> {
        self.in_leaf(mem, hash, |w| bucket::swing(w, self.geometry, old, new)).await
    }

    /// Removes the entry of a dead record, if nobody did that yet.
    pub(super) async fn unlink<M: Memory>(
        &self,
        mem: &mut M,
        hash: KeyHash,
        dead: Entry,
    ) -> Result<(), Error> {
        self.in_leaf(mem, hash, |w| bucket::unlink(w, self.geometry, dead)).await
    }

    /// Changes the leaf of a key, whichever it is.
    async fn in_leaf<M: Memory>(
        &self,
        mem: &mut M,
        hash: KeyHash,
        change: impl Fn(&Window<'_>) -> Changed,
    ) -> Result<(), Error> {
        let search = Search::new(hash);
        loop {
            let (location, _) = self.scan(mem, &search).await?;
            if mem.update(location.addr, self.geometry.bytes(), &change).await? == Changed::Done {
                return Ok(());
            }
        }
    }

    /// Splits a full leaf into four. If the leaf changes meanwhile, nothing happens: whoever needs the capacity
    /// scans again anyway.
    pub(super) async fn split<M: Memory>(&self, mem: &mut M, location: LeafLocation) -> Result<(), Error> {
        let geometry = self.geometry;
        let bytes = geometry.bytes();
        let snapshot = mem.inspect(location.addr, bytes, |w| Snapshot::of(w, geometry)).await?;
        if snapshot.children().is_some() {
            return Ok(());
        }
        if location.depth == DEEPEST {
            return Err(Error::TooManyCollisions { bucket: location.addr });
        }
        let contents = snapshot.split(location.depth);
        let children = mem.alloc(contents.len() as u64, location.addr.home(), Discipline::Coherent).await?;
        mem.write(children, &contents).await?;
        if !mem.update(location.addr, bytes, |w| snapshot.become_inner(w, children)).await? {
            mem.free(children).await?;
        }
        Ok(())
    }
}
