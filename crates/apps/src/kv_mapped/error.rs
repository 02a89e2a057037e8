//! Why there is no store.

use std::fmt;

use rackmem::MapError;

use crate::kv;

/// Why a store was not made or opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The memory cannot be mapped here.
    Map(MapError),
    /// As of every store.
    Store(kv::Error),
}

impl<E: Into<kv::Error>> From<E> for OpenError {
    fn from(why: E) -> Self {
        Self::Store(why.into())
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Map(why) => why.fmt(f),
            Self::Store(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}
