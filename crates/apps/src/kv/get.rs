//! Reading a value.

use rackmem::{Memory, Window};

use super::bucket::Entry;
use super::record::{self, Examined, Shape};
use super::retry::{Search, unless_freed};
use super::{Error, KvStore};

/// Where a value was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Source {
    /// The record.
    pub(super) record: Entry,
    /// How its memory is divided.
    pub(super) shape: Shape,
    /// The record that was forwarded to it, if the reader came that way: the entry may not be swung yet.
    pub(super) predecessor: Option<Entry>,
}

/// What reading the record of an entry came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Read {
    /// The value was copied.
    Value(Source),
    /// The key was deleted.
    Absent,
    /// It is the record of another key with the same tag.
    OtherKey,
    /// The record is not there any more.
    Gone(Error),
}

impl KvStore {
    /// Copies the value of `key` into `value`, whose length becomes that of the value. False if the key is
    /// absent; `value` is empty then.
    ///
    /// # Errors
    /// If the key is too long, or the rack's memory fails.
    pub async fn get<M: Memory>(&self, mem: &mut M, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        Ok(self.get_from(mem, key, value).await?.is_some())
    }

    /// As [`KvStore::get`], and says where the value came from.
    #[inline]
    pub(super) async fn get_from<M: Memory>(
        &self,
        mem: &mut M,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<Source>, Error> {
        let mut search = Search::new(self.hash(key)?);
        loop {
            let (_, leaf) = self.scan(mem, &search).await?;
            let Some(entry) = leaf.entry else { break };
            match self.read_record(mem, entry, key, value).await? {
                Read::Value(source) => return Ok(Some(source)),
                Read::Absent => break,
                Read::OtherKey => search.skip(entry),
                Read::Gone(error) => search.suspect(entry, error)?,
            }
        }
        value.clear();
        Ok(None)
    }

    /// Reads the record of an entry, or the successors that it was forwarded to.
    #[inline]
    async fn read_record<M: Memory>(
        &self,
        mem: &mut M,
        entry: Entry,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Read, Error> {
        let mut at = entry;
        let mut predecessor = None;
        // A short look may be answered by whoever has the block, without a copy. The last value tells how long this one is.
        let mut look = record::first_look(key, value.capacity());
        loop {
            let seal = self.seal(at);
            let rest = self.window(at.addr);
            let copy = |w: &Window<'_>| {
                let found = record::examine_part(w, rest, seal, key);
                if let Examined::Live(shape) = found
                    && shape.is_small()
                {
                    // The length was checked against the window: this grows `value` by a block at most, even
                    // if the record is just being changed.
                    value.resize(shape.value, 0);
                    w.read(shape.value_at(), value);
                }
                found
            };
            let mut found = match unless_freed(mem.inspect(at.addr, rest.min(look), copy).await)? {
                Ok(found) => found,
                Err(freed) => return Ok(Read::Gone(freed)),
            };
            if let Examined::Live(shape) = found
                && !shape.is_small()
            {
                // Boxed, so that the common path does not carry the space for it.
                match Box::pin(self.read_large(mem, at, shape, key, value)).await? {
                    Ok(state) => found = state,
                    Err(freed) => return Ok(Read::Gone(freed)),
                }
            }
            match found {
                Examined::Live(shape) => return Ok(Read::Value(Source { record: at, shape, predecessor })),
                Examined::Dead => return Ok(Read::Absent),
                Examined::OtherKey => return Ok(Read::OtherKey),
                Examined::Forwarded(successor) => {
                    predecessor = Some(at);
                    at = successor;
                }
                Examined::Stale => return Ok(Read::Gone(Error::Damaged { record: at.addr })),
                Examined::Longer => look = rest,
            }
        }
    }

    /// Copies the value of a large record, and then looks at the record again: if it is still live, nothing
    /// was changed or freed while it was read.
    async fn read_large<M: Memory>(
        &self,
        mem: &mut M,
        at: Entry,
        shape: Shape,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Result<Examined, Error>, Error> {
        value.resize(shape.value, 0);
        if let Err(freed) = unless_freed(mem.read(at.addr + shape.value_at() as u64, value).await)? {
            return Ok(Err(freed));
        }
        let seal = self.seal(at);
        let look = mem.inspect(at.addr, self.window(at.addr), |w| record::examine(w, seal, key)).await;
        unless_freed(look)
    }
}
