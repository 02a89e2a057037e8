//! Where edges come from: a file, or a generator. Both can be read in parts, by different workers at the same time.

mod edge_list;
mod kronecker;

use std::fmt;
use std::path::PathBuf;

pub use edge_list::{EdgeList, Lines};
pub use kronecker::Kronecker;

/// An edge, from one vertex to another one, or why it cannot be read.
pub type Edge = Result<(u32, u32), InputError>;

/// The edges of a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// They are generated. Graph500's edges have no direction: each is stored in both.
    Kronecker(Kronecker),
    /// They are in a file.
    List {
        /// The file.
        list: EdgeList,
        /// Each is stored in both directions.
        undirected: bool,
    },
}

impl Input {
    /// How many vertices they have.
    pub fn vertices(&self) -> u64 {
        match self {
            Self::Kronecker(graph) => graph.vertices(),
            Self::List { list, .. } => list.vertices,
        }
    }

    /// How many there are, as they are read.
    pub fn edges(&self) -> u64 {
        match self {
            Self::Kronecker(graph) => graph.edges(),
            Self::List { list, .. } => list.edges,
        }
    }

    /// Each is stored in both directions.
    pub fn undirected(&self) -> bool {
        match self {
            Self::Kronecker(_) => true,
            Self::List { undirected, .. } => *undirected,
        }
    }

    /// How many are stored.
    pub fn stored(&self) -> u64 {
        self.edges() * (1 + u64::from(self.undirected()))
    }

    /// One of so many parts of them.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn part(
        &self,
        part: usize,
        parts: usize,
    ) -> Result<Box<dyn Iterator<Item = Edge> + Send>, InputError> {
        Ok(match self {
            Self::Kronecker(graph) => {
                let begin = |part| (u128::from(graph.edges()) * part as u128 / parts as u128) as u64;
                Box::new(graph.range(begin(part)..begin(part + 1)).map(Ok))
            }
            Self::List { list, .. } => Box::new(list.part(part, parts)?),
        })
    }
}

/// What is wrong with a file of edges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1 on.
    pub line: Option<u64>,
    /// What is wrong there.
    pub wrong: Wrong,
}

/// The ways in which a file of edges can be wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Wrong {
    /// It cannot be read.
    Unreadable(String),
    /// No line is an edge.
    Empty,
    /// A line has another number of words.
    Words {
        /// How many.
        count: usize,
    },
    /// A word is no number.
    NoNumber {
        /// The word, or its beginning.
        word: String,
    },
    /// A vertex is 2^32 or more.
    TooLarge {
        /// The vertex.
        vertex: String,
    },
    /// A line is longer than any edge.
    LongLine {
        /// The longest, in bytes.
        most: u64,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        f.write_str(": ")?;
        match &self.wrong {
            Wrong::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Wrong::Empty => f.write_str("no line is an edge: write one a line, as two numbers"),
            Wrong::Words { count: 1 } => {
                f.write_str("one word, where an edge is two vertices: complete it, or remove it")
            }
            Wrong::Words { count } => write!(
                f,
                "{count} words, where an edge is two vertices: keep the first two (`cut -f1,2`), or make it a comment with #"
            ),
            Wrong::NoNumber { word } => {
                write!(f, "`{word}` is no vertex: vertices are numbers from 0 on; comments begin with #")
            }
            Wrong::TooLarge { vertex } => {
                write!(f, "vertex {vertex} is not below 2^32 = 4294967296: number the vertices anew")
            }
            Wrong::LongLine { most } => {
                write!(
                    f,
                    "a line of more than {most} bytes: this is no text, or is compressed (`gunzip` it first)"
                )
            }
        }
    }
}

impl std::error::Error for InputError {}

#[cfg(test)]
mod tests;
