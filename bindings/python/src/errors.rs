//! Exceptions: those of the language where it has one, and else subclasses of `rackmem.Error`.

use std::fmt::Display;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyIndexError, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use rackmem::{LockError, MapError as Unmapped, NameError, ReadError, RegionsError};

create_exception!(
    rackmem,
    Error,
    PyException,
    "Something that the rack cannot do; the text says why, and what to do."
);
create_exception!(rackmem, Lost, Error, "What was asked for died with a node.");
create_exception!(rackmem, NodeDown, Error, "The node that has it is down.");
create_exception!(rackmem, Fenced, Error, "The rack has declared this process's node dead: join again.");
create_exception!(rackmem, NotFound, Error, "Nothing has this name.");
create_exception!(rackmem, Differs, Error, "What has this name is of another kind, type or shape.");
create_exception!(rackmem, MapError, Error, "Memory cannot be mapped in this process.");

/// An error of ours as an exception.
pub(crate) trait Raised {
    fn raised(self) -> PyErr;
}

impl Raised for rackmem::Error {
    fn raised(self) -> PyErr {
        let text = self.to_string();
        match self {
            Self::Lost { .. } | Self::Unallocated { .. } | Self::HalfWritten { .. } => Lost::new_err(text),
            Self::NodeDown { .. } => NodeDown::new_err(text),
            Self::Fenced => Fenced::new_err(text),
            Self::OutOfBounds { .. } => PyIndexError::new_err(text),
            Self::OutOfMemory { .. } => PyMemoryError::new_err(text),
            Self::WrongLength { .. } | Self::BadSize { .. } | Self::RegionTooLong { .. } => {
                PyValueError::new_err(text)
            }
            _ => Error::new_err(text),
        }
    }
}

impl Raised for LockError {
    fn raised(self) -> PyErr {
        match self {
            Self::Failed(why) => why.raised(),
            other => Error::new_err(other.to_string()),
        }
    }
}

impl Raised for RegionsError {
    fn raised(self) -> PyErr {
        match self {
            Self::Failed(why) => why.raised(),
            other => PyValueError::new_err(other.to_string()),
        }
    }
}

impl Raised for NameError {
    fn raised(self) -> PyErr {
        let text = self.to_string();
        match self {
            Self::NotFound { .. } => NotFound::new_err(text),
            Self::Differs { .. } => Differs::new_err(text),
            Self::Lost { .. } => Lost::new_err(text),
            Self::Unusable { .. } => PyValueError::new_err(text),
            Self::Failed(why) => why.raised(),
            _ => Error::new_err(text),
        }
    }
}

impl Raised for Unmapped {
    fn raised(self) -> PyErr {
        match self {
            Self::Memory(why) => why.raised(),
            other => MapError::new_err(other.to_string()),
        }
    }
}

impl Raised for ReadError {
    fn raised(self) -> PyErr {
        match self {
            Self::Failed(why) => why.raised(),
            torn => Error::new_err(torn.to_string()),
        }
    }
}

impl Raised for apps::kv::Error {
    fn raised(self) -> PyErr {
        match self {
            Self::Memory(why) => why.raised(),
            Self::KeyTooLong { .. } | Self::ValueTooLong { .. } | Self::BadBuckets { .. } => {
                PyValueError::new_err(self.to_string())
            }
            Self::NoBuckets { .. } => PyMemoryError::new_err(self.to_string()),
            other => Error::new_err(other.to_string()),
        }
    }
}

impl Raised for apps::named::Error<apps::kv::Error> {
    fn raised(self) -> PyErr {
        match self {
            Self::Name(why) => why.raised(),
            Self::Store(why) => why.raised(),
            other => Error::new_err(other.to_string()),
        }
    }
}

/// What a process gets that cannot be in the rack.
pub(crate) fn failed(why: impl Display) -> PyErr {
    Error::new_err(why.to_string())
}
