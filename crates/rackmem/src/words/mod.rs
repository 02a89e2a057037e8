//! Words that anybody changes: the public API of remote atomics.
//!
//! Runs on every node. The words lie in the memory of one node, their home, and are never cached; an operation is executed there.
//! On an embedded rack, and between processes of one machine, the home's memory is within reach of every thread, so the thread's
//! own processor is the nearest place that can do it, and it does, at once. Between machines operations travel to the home's NIC,
//! which executes them on the same words.
//!
//! | file | holds |
//! | --- | --- |
//! | `operations.rs` | [`Words`], and its operations |
//! | `word.rs` | [`Word`]: what can be a word |
//! | `pending.rs` | [`WordOperation`] and [`Pending`]: operations that nobody waits for yet |
//! | `bytes.rs` | bytes of words as they are: READ and WRITE |
//! | `far.rs` | operations on their way to a home on another machine, in batches |
//! | `open.rs` | allocating words, and opening them by address |
//!
//! What must always hold: each operation is one atomic change of its word, at some moment between its call and its end.

mod bytes;
mod far;
mod open;
mod operations;
mod pending;
mod word;

pub(crate) use far::Pipeline;
pub use operations::Words;
pub use pending::{Pending, WordOperation};
pub use word::Word;
