//! When an operation begins again at the bucket, and when it gives up.

use super::Error;
use super::bucket::Entry;

/// Remembers an entry whose record was not there.
///
/// Usually the record was replaced or deleted, and freed, since the bucket was read; the next scan finds
/// another entry, or none. If it finds the same one (ids are not reused), that entry was linked all the time,
/// also when its record was not there: then the memory is at fault, and trying again would never end.
#[derive(Default)]
pub(super) struct Doubt {
    entry: Option<Entry>,
}

impl Doubt {
    /// The record of `entry`, which the last scan found, was not there because of `error`.
    pub(super) fn retry(&mut self, entry: Entry, error: Error) -> Result<(), Error> {
        if self.entry == Some(entry) {
            return Err(error);
        }
        self.entry = Some(entry);
        Ok(())
    }
}

/// What an access to a record comes to, if the record may have been freed meanwhile: `None` if there is no
/// memory of this kind any more.
pub(super) fn unless_freed<T>(result: Result<T, rackmem::Error>) -> Result<Result<T, Error>, Error> {
    use rackmem::Error::{Unallocated, WrongDiscipline};
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error @ (Unallocated { .. } | WrongDiscipline { .. })) => Ok(Err(error.into())),
        Err(error) => Err(error.into()),
    }
}
