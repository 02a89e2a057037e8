//! Objects that anybody reads whole: the public API of atomic object reads (SABRes).
//!
//! Runs on every node. Objects lie in the memory of one node, their home, each behind a version, and are never cached. A read
//! copies an object from there into the caller's buffer, and says whether a writer was there meanwhile. On an embedded rack the
//! home's memory is within reach of every thread, and reads and updates are executed on it by the thread that asks.
//!
//! | file | holds |
//! | --- | --- |
//! | `bytes.rs` | [`ByteObjects`]: objects of plain bytes, all of one length |
//! | `typed.rs` | [`Objects`]: objects of a plain type |
//! | `retry.rs` | [`Retry`] and [`ReadError`]: when to try again, and when not |
//!
//! What must always hold: what a read returns is what the object was at one moment between the read's call and its end.

mod bytes;
mod retry;
mod typed;

pub use bytes::{ByteObjects, ObjectWriter};
pub use retry::{ReadError, Retry};
pub use typed::Objects;
