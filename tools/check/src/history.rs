//! Histories: what clients asked of a key or a word, what they were told, and when.
//!
//! A driver records them around its calls into the rack; the checkers read them. A value is represented by a
//! [`Digest`], so a history of megabyte records stays small; a word is its own digest.
//!
//! What must always hold: `invoke` is read before the operation can have any effect, and `ret` after its
//! result is known, both from one clock. A client is sequential: it begins an operation when its last one has
//! returned. An operation that returned at the very instant at which *another* client began one counts as
//! concurrent with it (no clock can tell); the operations of *one* client keep their order even then, so
//! virtual time, in which a client goes on without a pause, loses nothing.

mod json_lines;

use std::fmt;

use wire::Nanos;

pub use json_lines::{ReadError, read_json_lines, write_json_line};

/// Stands for a value. Two values with one digest are the same value to a checker, so a run that is to be
/// checked should write values whose digests are all different: that is also what makes checking fast.
pub type Digest = u64;

/// What was asked and what was answered. The value of a key that is absent is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Saw this value.
    Read {
        /// What was there.
        value: Option<Digest>,
    },
    /// Made this the value, whatever was there before, if anything.
    Insert {
        /// What is there now.
        value: Digest,
    },
    /// Made this the value of a key that was present; `None`: found it absent and changed nothing.
    Update {
        /// What is there now.
        value: Option<Digest>,
    },
    /// Made the key absent, if it was not.
    Delete,
    /// Saw `value` and replaced it by `new`, with nothing in between.
    Rmw {
        /// What was there.
        value: Option<Digest>,
        /// What is there now.
        new: Digest,
    },
}

/// One operation of one client on one key (or on one word, with its address as the key).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Operation<K = String> {
    /// Who. Every thread that issues operations is a client of its own.
    pub client: u64,
    /// On what.
    pub key: K,
    /// What.
    pub op: Op,
    /// When it was asked.
    pub invoke: Nanos,
    /// When the answer was there. `None`: never. Such an operation took effect at some moment after `invoke`,
    /// exactly as recorded, or not at all; the result of a read that never returned means nothing.
    pub ret: Option<Nanos>,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Read { value } => write!(f, "read   -> {}", Shown(value)),
            Self::Insert { value } => write!(f, "insert {}", Shown(Some(value))),
            Self::Update { value: Some(value) } => write!(f, "update {}", Shown(Some(value))),
            Self::Update { value: None } => write!(f, "update -> absent"),
            Self::Delete => write!(f, "delete"),
            Self::Rmw { value, new } => write!(f, "rmw    {} -> {}", Shown(value), Shown(Some(new))),
        }
    }
}

/// A digest as people and files see it.
struct Shown(Option<Digest>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(digest) => write!(f, "{digest:016x}"),
            None => f.write_str("absent"),
        }
    }
}
