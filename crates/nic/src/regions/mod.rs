//! Regions: allocations that others use by one-sided operations. How they begin, are found, are named by keys, and end.
//!
//! At their home, which asks its allocator what is allocated; and what another node says to have it done. The bytes, and the
//! state that every operation looks at, are the driver's.
//!
//! | file | holds |
//! | --- | --- |
//! | `shape` | what a region is made of |
//! | `calls` | what one node asks of another, and the answers |
//! | `serving` | what a home does about it |
//! | `exported` | the keys of regions, and for how long they mean something |
//!
//! What must always hold: a region lives only in memory that is allocated, for that discipline; regions do not overlap; whoever
//! uses the key of a region that has ended touches nothing.

mod calls;
mod exported;
mod serving;
mod shape;

pub use calls::{CALL_BYTES, Call, Message, Reply};
pub use exported::{Exported, KEPT};
pub use serving::{Home, on_blocks_ended, serve};
pub use shape::Shape;

/// Words at the front of the answer to a batch of remote atomics on regions, with a bit for each entry: it was not executed, for
/// its region has ended.
pub const fn refused_words(entries: usize) -> usize {
    entries.div_ceil(64)
}
