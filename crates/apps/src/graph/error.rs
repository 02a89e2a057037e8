//! What can go wrong with a graph, said so that the caller can do something about it.

use std::fmt;

use super::input::InputError;

/// Why a graph was not built, or a kernel did not end.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The rack's memory failed, or is full.
    Memory(rackmem::Error),
    /// The edges cannot be read.
    Input(InputError),
    /// A graph needs a vertex.
    NoVertices,
    /// Slots have 32 bits.
    TooManyVertices {
        /// So many were asked for.
        vertices: u64,
        /// So many this rack can have.
        most: u64,
    },
    /// There is no such vertex.
    NoSuchVertex {
        /// The vertex.
        vertex: u64,
        /// How many there are.
        vertices: u64,
    },
    /// Another worker has failed, and says why.
    Abandoned,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => error.fmt(f),
            Self::Input(error) => error.fmt(f),
            Self::NoVertices => f.write_str("a graph without vertices: name at least one edge"),
            Self::TooManyVertices { vertices, most } => write!(
                f,
                "{vertices} vertices are more than the {most} that 32 bits number on this rack: number them without gaps"
            ),
            Self::NoSuchVertex { vertex, vertices } => {
                write!(f, "there is no vertex {vertex}: they are 0 to {}", vertices - 1)
            }
            Self::Abandoned => f.write_str("another worker of the rack has failed, and says why"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rackmem::Error> for Error {
    fn from(error: rackmem::Error) -> Self {
        Self::Memory(error)
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}
