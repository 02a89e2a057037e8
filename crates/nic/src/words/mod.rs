//! Remote atomics: read-modify-write of words, where the memory is (RAE: remote atomic extension, section III).
//!
//! Operations on a line that is not here wait in one entry of miss-status registers, however many there are; the line is
//! fetched once, all of them are executed on it in the order in which they came, and it is written back once.
//!
//! ```text
//! requests ──> mapping table ──> miss-status registers ──Fetch──> memory
//!                                  │ entry: line, W            <──line──
//!                                  │   subentries: who, operation, operands
//!                                  └──> line cache ──Done──> requesters, ──Release──> memory
//! ```
//!
//! Two drivers need two forms of the last step, and share the rest:
//!
//! | form | who else changes the words | how |
//! | --- | --- | --- |
//! | [`Lines`] | nobody, between fetch and release: the memory's directory sees to it | on the line, one operation a step |
//! | [`Folder`] | the processors of the node, at any moment | all operations on a word as one change, which the driver makes with the processor's own atomics |
//!
//! | file | what |
//! | --- | --- |
//! | `operation.rs` | the operations on values, and the table from the wire's operations to them |
//! | `lines.rs` | miss-status registers and the line cache |
//! | `entry.rs` | one entry of the registers |
//! | `fold.rs` | operations on one word as one change, and a burst of them sorted by words |
//!
//! What must always hold: every request that was taken is done once; operations on one word take effect in the order in
//! which they came, each on what the one before it left.

mod entry;
mod fold;
mod lines;
mod operation;

pub use fold::{Fold, Folder};
pub use lines::{Counters, Done, Effect, EntryId, Lines, LinesConfig, Refused, Request};
pub use operation::{Operands, Operation, Width, of_wire};

/// Bytes of a line.
pub const LINE: u64 = 64;
/// Double words of a line.
pub const WORDS: usize = 8;

/// What a line holds.
pub type Line = [u64; WORDS];
