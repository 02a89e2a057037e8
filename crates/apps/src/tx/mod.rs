//! Transactions on tables in coherent memory: two-phase locking without waiting (Concordia, section 7.4).
//!
//! A [`Database`] has tables of rows and ordered indices ([`Tree`](crate::tree::Tree)) in the rack's memory. Each thread of
//! each node is a [`Client`], which runs one transaction at a time. Whoever finds a lock taken gives up
//! ([`Error::Conflict`]), undoes what it did, and begins again: so nobody waits in a circle, and nobody waits at all.
//!
//! | file | holds |
//! | --- | --- |
//! | `database.rs` | tables, indices and what lies where; creating and opening a database |
//! | `locks.rs` | what locks rows: words in them, or the locks of their blocks |
//! | `row.rs` | a row's header: its locks, version and key; where rows come from |
//! | `log.rs` | what a client is about to do, in the rack's memory |
//! | `client.rs` | reading and changing rows in a transaction |
//! | `end.rs` | committing, undoing, and what is left of a client that died |
//! | `error.rs` | what can go wrong |
//!
//! # What must always hold
//! 1. *Two phases.* What a transaction has read is locked for reading, and what it has changed for writing, from then on
//!    until it has ended. So transactions are serializable, in the order of their ends.
//! 2. *A row's lock is also that of the keys in front of it*, down to the row before, in each index. Whoever looks for a key
//!    that is not there, or at a range, locks the row behind. Whoever inserts takes that lock for writing while it does.
//!    Each tree ends with a row that is larger than all others, for that purpose. So nobody sees phantoms.
//! 3. *What was locked is looked at again.* An index may have changed between a look and the lock: after the lock it is
//!    looked at once more, until nothing has.
//! 4. *A deleted row stays in its indices*, locked, until its transaction has committed.
//! 5. *Log first.* Locks, old bytes, and entries of indices are in the client's log before the lock is taken, the bytes are
//!    changed, or the entry is made. The log's first word says whether the transaction is to be undone. So whoever finds
//!    the log of a dead client can end what it has begun ([`Client::recover`]).
//! 6. *Rows' memory is only ever used for rows of the same table.* A lock may be tried on a row that has just been freed, but
//!    never on anything else.
//!
//! Rows have versions, which every transaction that changes a row raises by one. [`Client::record`] writes down which
//! versions a transaction has read and written: that gives the dependency graph, which a test checks for cycles.
//!
//! # Kinds of tables
//! Tables that nobody changes after loading are read without locks ([`Kind::Fixed`]), and into those that are only added to,
//! rows are inserted without locking the row behind, as nobody looks ([`Kind::Journal`]).
//!
//! # Not here
//! A row's keys never change: it is deleted and inserted instead, in two transactions.
//!
//! Readers wait for nobody, but take locks in rows: also who only reads writes to the blocks of rows. A row that was locked
//! by a dead client stays locked until somebody calls [`Client::recover`]. Data homed on a node are lost when it dies, and so is
//! what a node that died had changed in its cache: there a log helps where the client died and its node did not, as with the
//! processes that a daemon serves. In memory with copies ([`NodeHandle::keep_copies`](rackmem::NodeHandle::keep_copies)) it helps
//! where the node has died, too: what survives is a prefix of what that one wrote, in which nothing is changed that is not in the
//! log. The rows of a page that a dead client had not used are lost.

mod client;
mod database;
mod end;
mod error;
mod locks;
mod log;
mod row;

pub use client::{Client, Footprint, Rule};
pub use database::{Database, Kind, MOST_CLIENTS, Table, TableSpec};
pub use error::{Error, Lock};
pub use locks::{Blocks, Locking, Words};
pub use row::Row;
