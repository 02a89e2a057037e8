//! What can go wrong with the store, said so that the caller can do something about it.

use std::fmt;

use rackmem::{GlobalAddr, NodeId};

/// Why an operation on the store failed.
///
/// A change that fails with [`Error::Memory`] may or may not have taken effect; the other errors say that nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The rack's memory failed, or is full.
    Memory(rackmem::Error),
    /// The key is longer than this store takes.
    KeyTooLong {
        /// Bytes in the key.
        len: usize,
        /// Bytes that a key may have.
        most: usize,
    },
    /// The value is longer than this store takes.
    ValueTooLong {
        /// Bytes in the value.
        len: usize,
        /// Bytes that a value may have.
        most: usize,
    },
    /// A bucket is full, and its home has no further ones left, or at this moment all of them are in others' hands.
    Full {
        /// The home.
        home: NodeId,
    },
    /// Buckets of these sizes cannot be.
    BadBuckets {
        /// Bytes that a bucket may have.
        most: usize,
    },
    /// Somebody has been writing a bucket for so long that it is likely dead.
    Stuck {
        /// Its home.
        home: NodeId,
        /// Which one it is there.
        bucket: usize,
    },
    /// There is no store at the address, or one of another layout.
    NotAStore {
        /// The address.
        root: GlobalAddr,
    },
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
            Self::KeyTooLong { len, most } => {
                write!(f, "a key of {len} bytes is too long: this store takes keys of up to {most} bytes")
            }
            Self::ValueTooLong { len, most } => {
                write!(f, "a value of {len} bytes is too long: this store takes values of up to {most} bytes")
            }
            Self::Full { home } => {
                write!(f, "all further buckets of node {} are taken: create the store for more keys", home.0)
            }
            Self::BadBuckets { most } => {
                write!(f, "such buckets cannot be: choose sizes with which a bucket has up to {most} bytes")
            }
            Self::Stuck { home, bucket } => {
                write!(
                    f,
                    "bucket {bucket} of node {} is being written without an end: its writer is likely dead",
                    home.0
                )
            }
            Self::NotAStore { root } => {
                write!(
                    f,
                    "there is no object store of this layout at {root}: pass the address that ObjectStore::root returned"
                )
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(error) => Some(error),
            _ => None,
        }
    }
}
