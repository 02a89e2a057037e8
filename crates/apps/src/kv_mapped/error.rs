//! What can go wrong with the store, said so that the caller can do something about it.

use std::fmt;

use rackmem::{GlobalAddr, MapError, NodeId};

/// Why an operation on the store failed. Nothing was changed then.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The rack's memory failed, or is full.
    Memory(rackmem::Error),
    /// The memory cannot be mapped here.
    Map(MapError),
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
    /// A part of a value was to be written that the value does not have.
    OutsideValue {
        /// The first byte to be written.
        offset: usize,
        /// Bytes to be written.
        len: usize,
        /// Bytes in the value.
        value: usize,
    },
    /// No slot is free.
    Full {
        /// Slots of the store.
        slots: u64,
    },
    /// A writer stopped in the middle of this key's value seconds ago: it was suspended, or it died.
    Abandoned {
        /// Its node.
        node: NodeId,
    },
    /// There is no store at the address.
    NotAStore {
        /// The address.
        root: GlobalAddr,
    },
}

impl From<rackmem::Error> for Error {
    fn from(why: rackmem::Error) -> Self {
        Self::Memory(why)
    }
}

impl From<MapError> for Error {
    fn from(why: MapError) -> Self {
        Self::Map(why)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(why) => why.fmt(f),
            Self::Map(why) => why.fmt(f),
            Self::KeyTooLong { len, most } => {
                write!(f, "a key of {len} bytes is too long: this store takes keys of up to {most} bytes")
            }
            Self::ValueTooLong { len, most } => {
                write!(f, "a value of {len} bytes is too long: this store takes values of up to {most} bytes")
            }
            Self::OutsideValue { offset, len, value } => {
                write!(
                    f,
                    "{len} bytes at {offset} are not inside the {value}-byte value: use put to change its length"
                )
            }
            Self::Full { slots } => {
                write!(
                    f,
                    "all {slots} slots are taken, some of them by deleted keys: create the store for more keys"
                )
            }
            Self::Abandoned { node } => {
                write!(
                    f,
                    "a writer on node {} stopped in the middle of this value: it is suspended or dead",
                    node.0
                )
            }
            Self::NotAStore { root } => {
                write!(
                    f,
                    "there is no mapped store at {root}: pass the address that MappedStore::root returned"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
