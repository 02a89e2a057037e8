//! What can go wrong with the store, said so that the caller can do something about it.

use std::fmt;

use rackmem::{GlobalAddr, NodeId};

/// Why an operation on the store failed.
///
/// A change that fails with [`Error::Memory`] may or may not have taken effect; the other errors say that
/// nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The rack's memory failed, or is full.
    Memory(rackmem::Error),
    /// The key is longer than this store takes.
    KeyTooLong {
        /// Bytes in the key.
        len: usize,
        /// Bytes that a key may have. In a [`KvStore`](super::KvStore) it is 1024, and 32 less than a block.
        most: usize,
    },
    /// The value is longer than this store takes.
    ValueTooLong {
        /// Bytes in the value.
        len: usize,
        /// Bytes that a value may have.
        most: usize,
    },
    /// A part of a value was to be written that the value does not have.
    OutsideValue {
        /// The first byte to be written.
        offset: usize,
        /// Bytes to be written.
        len: usize,
        /// Bytes in the value.
        value: usize,
    },
    /// There is no store at the address, or one of a rack with another block size.
    NotAStore {
        /// The address.
        root: GlobalAddr,
    },
    /// A store of so many slots has none left (only in a [`MappedStore`](crate::kv_mapped::MappedStore)).
    Full {
        /// How many there are.
        slots: u64,
    },
    /// A bucket is full, and its home has no further ones left, or at this moment all of them are in others' hands (only in an
    /// [`ObjectStore`](crate::objects::ObjectStore)).
    NoBuckets {
        /// The home.
        home: NodeId,
    },
    /// Buckets of these sizes cannot be (only in an [`ObjectStore`](crate::objects::ObjectStore)).
    BadBuckets {
        /// Bytes that a bucket may have.
        most: usize,
    },
    /// Somebody has been writing a bucket for so long that it is likely dead (only in an [`ObjectStore`](crate::objects::ObjectStore)).
    Stuck {
        /// Its home.
        home: NodeId,
        /// Which one it is there.
        bucket: usize,
    },
    /// A writer stopped in the middle of this key's value seconds ago: it was suspended, or it died (only in a
    /// [`MappedStore`](crate::kv_mapped::MappedStore)).
    Abandoned {
        /// Its node.
        node: NodeId,
    },
    /// So many keys share one hash that no bucket holds them.
    TooManyCollisions {
        /// The bucket that is full.
        bucket: GlobalAddr,
    },
    /// A record that is in use was overwritten by something other than the store.
    Damaged {
        /// The record.
        record: GlobalAddr,
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
                write!(f, "a value of {len} bytes is too long: values have up to {most} bytes")
            }
            Self::OutsideValue { offset, len, value } => {
                write!(
                    f,
                    "{len} bytes at {offset} are not inside the {value}-byte value: an update in place cannot change its length, use put"
                )
            }
            Self::NotAStore { root } => {
                write!(
                    f,
                    "there is no key-value store of this rack at {root}: pass the address that KvStore::root (or the like) returned, before its destroy"
                )
            }
            Self::Full { slots } => write!(
                f,
                "all {slots} slots are taken, some of them by deleted keys: create the store for more keys"
            ),
            Self::NoBuckets { home } => {
                write!(f, "all further buckets of node {} are taken: create the store for more keys", home.0)
            }
            Self::BadBuckets { most } => {
                write!(f, "such buckets cannot be: choose sizes with which a bucket has up to {most} bytes")
            }
            Self::Stuck { home, bucket } => write!(
                f,
                "bucket {bucket} of node {} is being written without an end: its writer is likely dead",
                home.0
            ),
            Self::Abandoned { node } => write!(
                f,
                "a writer on node {} stopped in the middle of this value: it is suspended or dead",
                node.0
            ),
            Self::TooManyCollisions { bucket } => {
                write!(
                    f,
                    "the bucket at {bucket} is full of keys with one and the same hash: create the store with another salt"
                )
            }
            Self::Damaged { record } => {
                write!(
                    f,
                    "the record at {record} was overwritten while it was in use: something else writes to the store's memory"
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
