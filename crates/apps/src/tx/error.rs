//! What can go wrong with a transaction, said so that the caller can do something about it.

use std::fmt;

use rackmem::GlobalAddr;

use super::database::{MOST_CLIENTS, Table};

/// Which lock was taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lock {
    /// A row's, that was to be read.
    Read,
    /// A row's, that was to be changed.
    Write,
    /// That of the row behind a range, or behind where a row was to be inserted.
    NextKey,
}

impl Lock {
    /// For messages: what the lock was wanted for.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::NextKey => "next key",
        }
    }
}

/// Why an operation of a transaction failed. Whatever it was, the transaction has to be undone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The rack's memory failed, or is full.
    Memory(rackmem::Error),
    /// Another transaction has the lock: undo this one, and begin again.
    Conflict {
        /// Of which table.
        table: Table,
        /// Which lock.
        lock: Lock,
    },
    /// A row with this key is there, or was deleted by the same transaction.
    Duplicate {
        /// Of which table.
        table: Table,
        /// The key.
        key: u128,
    },
    /// The transaction has changed more than its log has room for.
    LogFull {
        /// Bytes of the log.
        bytes: u64,
    },
    /// There is no such client.
    NoSuchClient {
        /// Who was to be one.
        client: usize,
        /// How many there are.
        clients: usize,
    },
    /// Lock words have a bit for each client.
    TooManyClients {
        /// How many there were to be.
        clients: usize,
    },
    /// Somebody else is ending what this dead client has begun.
    BeingRecovered {
        /// Who does it.
        by: usize,
    },
    /// There is no database at the address, or one with other tables.
    NotADatabase {
        /// The address.
        root: GlobalAddr,
    },
}

impl Error {
    /// True if the transaction may succeed when it is tried again.
    pub const fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }
}

impl From<rackmem::Error> for Error {
    fn from(error: rackmem::Error) -> Self {
        Self::Memory(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => error.fmt(f),
            Self::Conflict { table, lock } => write!(
                f,
                "another transaction has a lock of table {} ({}): undo this one and try it again",
                table.0,
                lock.name()
            ),
            Self::Duplicate { table, key } => write!(f, "table {} has the key {key:#x} already", table.0),
            Self::LogFull { bytes } => write!(
                f,
                "the transaction changes more than its log of {bytes} bytes has room for: divide it, or create the database with larger logs"
            ),
            Self::NoSuchClient { client, clients } => {
                write!(f, "there is no client {client}: they are 0 to {}", clients - 1)
            }
            Self::TooManyClients { clients } => write!(
                f,
                "{clients} clients are too many: lock words have a bit for each of {MOST_CLIENTS}; take fewer threads"
            ),
            Self::BeingRecovered { by } => {
                write!(f, "client {by} is undoing what the dead client had begun: leave it to that one")
            }
            Self::NotADatabase { root } => write!(
                f,
                "there is no database with these tables at {root}: pass the address that Database::root returned"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(error) => Some(error),
            _ => None,
        }
    }
}
