//! When an operation begins again at the bucket, and when it gives up.

use rackmem::{GlobalAddr, Memory};

use super::Error;
use super::bucket::Entry;
use super::hash::KeyHash;

/// One operation's search for the record of its key: what it learned from scans that led nowhere.
pub(super) struct Search {
    pub(super) hash: KeyHash,
    /// Entries with the key's tag whose records are of other keys. An entry never changes its key.
    others: Vec<Entry>,
    /// The last entry whose record was not there.
    suspect: Option<Entry>,
}

impl Search {
    /// Looks for the key with this hash.
    #[inline]
    pub(super) fn new(hash: KeyHash) -> Self {
        Self { hash, others: Vec::new(), suspect: None }
    }

    /// What the next scan has to skip.
    #[inline]
    pub(super) fn others(&self) -> &[Entry] {
        &self.others
    }

    /// The record of `entry` is another key's: scan again, without it. Two keys of one leaf share their tag
    /// once in a million times.
    #[cold]
    pub(super) fn skip(&mut self, entry: Entry) {
        self.others.push(entry);
    }

    /// The record of `entry`, which the last scan found, was not there because of `error`: scan again.
    ///
    /// Usually the record was replaced or deleted, and freed, since the bucket was read; the next scan finds
    /// another entry, or none. If it finds the same one (ids are not reused), that entry was linked all the
    /// time, also when its record was not there: then the memory is at fault, and trying again would never
    /// end.
    ///
    /// # Errors
    /// In that case, `error`.
    #[cold]
    pub(super) fn suspect(&mut self, entry: Entry, error: Error) -> Result<(), Error> {
        if self.suspect == Some(entry) {
            return Err(error);
        }
        self.suspect = Some(entry);
        Ok(())
    }
}

/// What an access to a record comes to if the record may have been freed meanwhile. The inner error is that
/// its memory is no allocation of this kind any more; the outer one is any other error.
#[inline]
pub(super) fn unless_freed<T>(result: Result<T, rackmem::Error>) -> Result<Result<T, Error>, Error> {
    use rackmem::Error::{Unallocated, WrongDiscipline};
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error @ (Unallocated { .. } | WrongDiscipline { .. })) => Ok(Err(error.into())),
        Err(error) => Err(error.into()),
    }
}

/// Gives memory of the store back. What a node had allocated that has died stays allocated: nobody can give it to others any more.
pub(super) async fn free<M: Memory>(mem: &mut M, addr: GlobalAddr) -> Result<(), Error> {
    match mem.free(addr).await {
        Err(rackmem::Error::NodeDown { .. }) => Ok(()),
        freed => Ok(freed?),
    }
}
