//! Why a lock was not taken.

use std::fmt;

use wire::GlobalAddr;

use crate::Error;

/// Why a lock was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockError {
    /// A thread panicked while it held the lock for writing: the data may be half changed.
    /// [`Locked::read_poisoned`](crate::Locked::read_poisoned) and [`Locked::write_poisoned`](crate::Locked::write_poisoned) get at
    /// them all the same, and [`Locked::clear_poison`](crate::Locked::clear_poison) takes the mark away.
    Poisoned {
        /// The lock's address.
        addr: GlobalAddr,
    },
    /// The lock could not be taken.
    Failed(Error),
}

impl LockError {
    /// Why the lock could not be taken, if that is so.
    pub const fn failure(self) -> Option<Error> {
        match self {
            Self::Poisoned { .. } => None,
            Self::Failed(why) => Some(why),
        }
    }
}

impl From<Error> for LockError {
    fn from(why: Error) -> Self {
        Self::Failed(why)
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisoned { addr } => write!(
                f,
                "a thread panicked while it held the lock at {addr} for writing: look at the data with read_poisoned, repair them with \
                 write_poisoned, then call clear_poison"
            ),
            Self::Failed(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Poisoned { .. } => None,
            Self::Failed(why) => Some(why),
        }
    }
}
