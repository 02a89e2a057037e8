//! What can go wrong with an ordered store.

use std::fmt;

use rackmem::{Error, GlobalAddr};

/// Why an operation failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OrderedError {
    /// The rack's memory did.
    Memory(Error),
    /// A value has more bytes than the store was made for.
    TooLong {
        /// Of the value.
        len: usize,
        /// Of any.
        most: usize,
    },
    /// A record with its length does not fit a block.
    NoBlock {
        /// Of a record.
        record_bytes: usize,
        /// That it may have.
        most: usize,
    },
    /// There is no ordered store.
    NotAStore {
        /// At this address.
        root: GlobalAddr,
    },
}

impl fmt::Display for OrderedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => error.fmt(f),
            Self::TooLong { len, most } => {
                write!(
                    f,
                    "a value of {len} bytes is longer than the {most} bytes of a record: make the store with longer ones"
                )
            }
            Self::NoBlock { record_bytes, most } => write!(
                f,
                "records of {record_bytes} bytes do not fit a block, which has room for {most}: take larger blocks, or shorter records"
            ),
            Self::NotAStore { root } => write!(f, "there is no ordered store at {root}"),
        }
    }
}

impl std::error::Error for OrderedError {}

impl From<Error> for OrderedError {
    fn from(error: Error) -> Self {
        Self::Memory(error)
    }
}
