//! Why a lock was not taken, or was but with a warning.

use std::fmt;

use crate::Error;

/// Why a lock was not simply taken. As in the standard library, a poisoned lock is taken all the same, and the guard is in here.
pub enum LockError<G> {
    /// A thread panicked while it held the lock for writing: the data may be half changed. They can be looked at, repaired,
    /// and the mark taken away.
    Poisoned(G),
    /// The lock could not be taken.
    Failed(Error),
}

impl<G> LockError<G> {
    /// The guard, if there is one: for whoever does not care about poison.
    ///
    /// # Errors
    /// If the lock could not be taken.
    pub fn into_guard(self) -> Result<G, Error> {
        match self {
            Self::Poisoned(guard) => Ok(guard),
            Self::Failed(why) => Err(why),
        }
    }

    /// Why the lock could not be taken, if that is so.
    pub const fn failure(&self) -> Option<Error> {
        match self {
            Self::Poisoned(_) => None,
            Self::Failed(why) => Some(*why),
        }
    }
}

impl<G> From<Error> for LockError<G> {
    fn from(why: Error) -> Self {
        Self::Failed(why)
    }
}

impl<G> fmt::Debug for LockError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisoned(_) => f.write_str("Poisoned(..)"),
            Self::Failed(why) => f.debug_tuple("Failed").field(why).finish(),
        }
    }
}

impl<G> fmt::Display for LockError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisoned(_) => f.write_str(
                "a thread panicked while it held this lock for writing: check the data, then call clear_poison",
            ),
            Self::Failed(why) => why.fmt(f),
        }
    }
}

impl<G> std::error::Error for LockError<G> {}
