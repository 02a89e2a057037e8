//! Setting a value.

use rackmem::{Memory, Window};

use super::bucket::{Changed, Entry};
use super::draft::{Draft, Forwarding};
use super::record::{self, Examined};
use super::retry::{Search, unless_freed};
use super::{Error, KvStore};

/// What to do with a key that is present.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Present {
    Replace,
    Keep,
}

/// What an attempt to set a value inside its record came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InPlace {
    /// The value is set (or was to be kept).
    Done,
    /// The record is live, but too small or much too large.
    Full,
    /// Something else was found.
    Not(Examined),
}

/// What the entries of a key ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// The key is absent; the entry of its dead record may still be there.
    Link { dead: Option<Entry> },
    /// The key's record is to be replaced.
    Forward { old: Entry },
}

impl KvStore {
    /// Sets the value of `key`. True if the key was present, false if it was absent.
    ///
    /// # Errors
    /// If the key or the value is too long, or the rack's memory fails or is full.
    pub async fn put<M: Memory>(&self, mem: &mut M, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        self.set(mem, key, value, Present::Replace).await
    }

    /// Sets the value of `key` if it is absent. True if it was.
    ///
    /// # Errors
    /// If the key or the value is too long, or the rack's memory fails or is full.
    pub async fn insert<M: Memory>(&self, mem: &mut M, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(!self.set(mem, key, value, Present::Keep).await?)
    }

    /// Sets the value of `key`, unless it is present and to be kept. True if it was present.
    async fn set<M: Memory>(
        &self,
        mem: &mut M,
        key: &[u8],
        value: &[u8],
        present: Present,
    ) -> Result<bool, Error> {
        let mut draft = None;
        let result = self.set_with(mem, key, value, present, &mut draft).await;
        // Not published: another worker was first, or something failed.
        if let Some(unused) = draft {
            let freed = mem.free(unused.addr).await;
            let was_present = result?;
            freed?;
            return Ok(was_present);
        }
        result
    }

    /// The draft is taken out when it is published.
    async fn set_with<M: Memory>(
        &self,
        mem: &mut M,
        key: &[u8],
        value: &[u8],
        present: Present,
        draft: &mut Option<Draft>,
    ) -> Result<bool, Error> {
        let hash = self.hash(key)?;
        let mut search = Search::new(hash);
        loop {
            let (location, leaf) = self.scan(mem, &search).await?;
            let mut next = Next::Link { dead: None };
            if let Some(entry) = leaf.entry {
                let found = self.set_in_place(mem, entry, key, value, present).await?;
                match found.unwrap_or(InPlace::Not(Examined::Stale)) {
                    InPlace::Done => return Ok(true),
                    InPlace::Full => next = Next::Forward { old: entry },
                    InPlace::Not(Examined::Dead) => next = Next::Link { dead: Some(entry) },
                    InPlace::Not(Examined::OtherKey) => {
                        search.skip(entry);
                        continue;
                    }
                    InPlace::Not(Examined::Forwarded(successor)) => {
                        self.swing(mem, hash, entry, successor).await?;
                        continue;
                    }
                    InPlace::Not(Examined::Stale | Examined::Longer | Examined::Live(_)) => {
                        search
                            .suspect(entry, found.err().unwrap_or(Error::Damaged { record: entry.addr }))?;
                        continue;
                    }
                }
            }
            let Some(new) = *draft else {
                // The record's id must come from a scan that is younger than its memory.
                *draft = Some(self.draft(mem, hash, key, value).await?);
                continue;
            };
            let entry = Entry { id: leaf.next_id(hash), addr: new.addr };
            self.finish(mem, new, entry).await?;
            match next {
                Next::Forward { old } => {
                    if self.forward(mem, key, old, entry, |_, _| true).await? == Forwarding::Done {
                        *draft = None;
                        self.retire(mem, hash, old, entry).await?;
                        return Ok(true);
                    }
                }
                Next::Link { dead } => match self.link(mem, location, &leaf, dead, entry).await? {
                    Changed::Done => {
                        *draft = None;
                        return Ok(false);
                    }
                    Changed::Outdated => {}
                    Changed::Full => self.split(mem, location).await?,
                },
            }
        }
    }

    /// Sets the value inside the record of an entry, if that is the key's record and has capacity.
    async fn set_in_place<M: Memory>(
        &self,
        mem: &mut M,
        entry: Entry,
        key: &[u8],
        value: &[u8],
        present: Present,
    ) -> Result<Result<InPlace, Error>, Error> {
        let (addr, len, seal) = (entry.addr, self.window(entry.addr), self.seal(entry));
        if present == Present::Keep {
            let look = |w: &Window<'_>| match record::examine(w, seal, key) {
                Examined::Live(_) => InPlace::Done,
                other => InPlace::Not(other),
            };
            return unless_freed(mem.inspect(addr, len, look).await);
        }
        let set = |w: &Window<'_>| match record::examine(w, seal, key) {
            Examined::Live(shape) if shape.takes(value.len()) => {
                record::set_value(w, shape, value);
                InPlace::Done
            }
            Examined::Live(_) => InPlace::Full,
            other => InPlace::Not(other),
        };
        unless_freed(mem.update(addr, len, set).await)
    }
}
