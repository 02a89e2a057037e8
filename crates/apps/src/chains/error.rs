//! What can go wrong with the store, said so that the caller can do something about it. What must always hold: but for a failure of the
//! rack's memory, what failed has changed nothing.

use std::fmt;

/// Why an operation on the store failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The rack's memory failed, or is full.
    Memory(rackmem::Error),
    /// Another key of this store has the same hash of 64 bits.
    SameHash,
    /// What is there was not put by this store.
    NotAnEntry,
}

impl From<rackmem::Error> for Error {
    fn from(error: rackmem::Error) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => error.fmt(f),
            Self::SameHash => {
                f.write_str("another key of the store has the same hash: name this one otherwise")
            }
            Self::NotAnEntry => {
                f.write_str("what the chain has was not put by this store: others write to it by its address")
            }
        }
    }
}

impl std::error::Error for Error {}
