//! When a read that a writer has torn is tried again.

use std::fmt;
use std::time::Instant;

use crate::error::Error;

/// What is done about a read that was torn by a writer. The memory's side never tries again: it is the caller who knows what
/// it costs to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// Nothing: one attempt.
    Never,
    /// So many more attempts.
    Times(u32),
    /// More attempts as long as it is not this late. The last one may begin just before.
    Until(Instant),
    /// More attempts, until one succeeds.
    Forever,
}

/// Why a read returned nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// A writer was there, in every attempt. What is in the buffer may be of two versions.
    Torn {
        /// How many there were.
        attempts: u64,
    },
    /// It cannot be read at all.
    Failed(Error),
}

impl Retry {
    /// Whether to try again after so many attempts.
    pub(super) fn again(self, attempts: u64) -> bool {
        match self {
            Self::Never => false,
            Self::Times(more) => attempts <= u64::from(more),
            Self::Until(late) => Instant::now() < late,
            Self::Forever => true,
        }
    }
}

impl From<Error> for ReadError {
    fn from(why: Error) -> Self {
        Self::Failed(why)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn { attempts } => {
                write!(
                    f,
                    "the object was written in each of {attempts} attempts to read it: allow more with `Retry`"
                )
            }
            Self::Failed(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}
