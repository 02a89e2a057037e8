//! Changing a value that is there: a part of it, or all of it as a function of what it was.

use rackmem::{Memory, Window};

use super::bucket::Entry;
use super::draft::{Draft, Forwarding};
use super::get::Source;
use super::hash::KeyHash;
use super::record::{self, Examined, Shape};
use super::retry::{Search, unless_freed};
use super::{Error, KvStore};

/// What an attempt to change a value inside its record came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InPlace {
    Done,
    /// The change is not possible, and nothing was changed.
    Refused(Error),
    /// The record is live, but cannot be changed in place.
    Replace,
    /// Something else was found.
    Not(Examined),
}

/// What the attempts on all entries of a key came to.
enum Attempt {
    Done,
    Absent,
    Replace,
}

impl KvStore {
    /// Overwrites the bytes from `offset` on of the value of `key`, atomically with everything else that
    /// happens to it. False if the key is absent.
    ///
    /// A record that lies in one block is written in place; a larger one is replaced as a whole.
    ///
    /// # Errors
    /// If the bytes are not all inside the value, the key is too long, or the rack's memory fails.
    pub async fn update_in_place<M: Memory>(
        &self,
        mem: &mut M,
        key: &[u8],
        offset: usize,
        bytes: &[u8],
    ) -> Result<bool, Error> {
        let outside = |value: usize| Error::OutsideValue { offset, len: bytes.len(), value };
        let inside = |value: usize| offset.checked_add(bytes.len()).is_some_and(|end| end <= value);
        let write = |w: &Window<'_>, shape: Shape| {
            if !inside(shape.value) {
                return InPlace::Refused(outside(shape.value));
            }
            if !shape.is_small() {
                return InPlace::Replace;
            }
            w.write(shape.value_at() + offset, bytes);
            InPlace::Done
        };
        match self.attempt(mem, key, write).await? {
            Attempt::Done => Ok(true),
            Attempt::Absent => Ok(false),
            Attempt::Replace => {
                let write = |value: &mut Vec<u8>| {
                    if !inside(value.len()) {
                        return Err(outside(value.len()));
                    }
                    value[offset..offset + bytes.len()].copy_from_slice(bytes);
                    Ok(())
                };
                Box::pin(self.replace(mem, key, &mut Vec::new(), write)).await
            }
        }
    }

    /// Replaces the value of `key` by what `change` makes of it, atomically with everything else that happens
    /// to the key. False if the key is absent. Afterwards `value` holds the new value, or nothing.
    ///
    /// `change` may be called several times, each time with the value as it is then; only its last call
    /// counts. It may be called while the value's block is held for writing: it must be short, and must not
    /// use the rack's memory by other ways.
    ///
    /// # Errors
    /// If the key or the new value is too long, or the rack's memory fails or is full.
    pub async fn read_modify_write<M: Memory>(
        &self,
        mem: &mut M,
        key: &[u8],
        value: &mut Vec<u8>,
        mut change: impl FnMut(&mut Vec<u8>),
    ) -> Result<bool, Error> {
        let modify = |w: &Window<'_>, shape: Shape| {
            if !shape.is_small() {
                return InPlace::Replace;
            }
            value.resize(shape.value, 0);
            w.read(shape.value_at(), value);
            change(value);
            if !shape.takes(value.len()) {
                return InPlace::Replace;
            }
            record::set_value(w, shape, value);
            InPlace::Done
        };
        match self.attempt(mem, key, modify).await? {
            Attempt::Done => Ok(true),
            Attempt::Absent => {
                value.clear();
                Ok(false)
            }
            Attempt::Replace => {
                let change = |value: &mut Vec<u8>| {
                    change(value);
                    Ok(())
                };
                Box::pin(self.replace(mem, key, value, change)).await
            }
        }
    }

    /// Tries to change the value of `key` inside its record.
    async fn attempt<M: Memory>(
        &self,
        mem: &mut M,
        key: &[u8],
        mut change: impl FnMut(&Window<'_>, Shape) -> InPlace,
    ) -> Result<Attempt, Error> {
        let hash = self.hash(key)?;
        let mut search = Search::new(hash);
        loop {
            let (_, leaf) = self.scan(mem, &search).await?;
            let Some(entry) = leaf.entry else { return Ok(Attempt::Absent) };
            let seal = self.seal(entry);
            let change = |w: &Window<'_>| match record::examine(w, seal, key) {
                Examined::Live(shape) => change(w, shape),
                other => InPlace::Not(other),
            };
            let found = unless_freed(mem.update(entry.addr, self.window(entry.addr), change).await)?;
            match found.unwrap_or(InPlace::Not(Examined::Stale)) {
                InPlace::Done => return Ok(Attempt::Done),
                InPlace::Refused(error) => return Err(error),
                InPlace::Replace => return Ok(Attempt::Replace),
                InPlace::Not(Examined::Dead) => return Ok(Attempt::Absent),
                InPlace::Not(Examined::OtherKey) => search.skip(entry),
                InPlace::Not(Examined::Forwarded(successor)) => {
                    self.swing(mem, hash, entry, successor).await?;
                }
                InPlace::Not(Examined::Stale | Examined::Longer | Examined::Live(_)) => {
                    search.suspect(entry, found.err().unwrap_or(Error::Damaged { record: entry.addr }))?;
                }
            }
        }
    }

    /// Changes the value of `key` by a new record. `value` holds the new value afterwards.
    async fn replace<M: Memory>(
        &self,
        mem: &mut M,
        key: &[u8],
        value: &mut Vec<u8>,
        mut change: impl FnMut(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let hash = self.hash(key)?;
        loop {
            let Some(source) = self.get_from(mem, key, value).await? else { return Ok(false) };
            // A small record may be changed in place meanwhile: then it is not forwarded, and all begins
            // again. (If it was changed and changed back, the new value is right all the same.)
            let before = if source.shape.is_small() { value.clone() } else { Vec::new() };
            change(value)?;
            let draft = self.draft(mem, hash, key, value).await?;
            let replaced = self.replace_by(mem, hash, key, draft, source, &before).await;
            // After an error it may have been published, and is left alone.
            if replaced == Ok(Forwarding::Outdated) {
                mem.free(draft.addr).await?;
            }
            if replaced? == Forwarding::Done {
                return Ok(true);
            }
        }
    }

    /// Forwards a record to a draft, if it still holds `before` (a small one; a large one never changes).
    async fn replace_by<M: Memory>(
        &self,
        mem: &mut M,
        hash: KeyHash,
        key: &[u8],
        draft: Draft,
        source: Source,
        before: &[u8],
    ) -> Result<Forwarding, Error> {
        let old = source.record;
        if let Some(predecessor) = source.predecessor {
            self.swing(mem, hash, predecessor, old).await?;
        }
        let (_, leaf) = self.scan(mem, &Search::new(hash)).await?;
        let new = Entry { id: leaf.next_id(hash), addr: draft.addr };
        self.finish(mem, draft, new).await?;
        let unchanged = |w: &Window<'_>, shape: Shape| !shape.is_small() || shape.value_is(w, before);
        let forwarding = self.forward(mem, key, old, new, unchanged).await?;
        if forwarding == Forwarding::Done {
            self.retire(mem, hash, old, new).await?;
        }
        Ok(forwarding)
    }
}
