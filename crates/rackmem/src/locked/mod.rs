//! Locks that carry their data: the public API (generalized coherence, "GCS").
//!
//! Runs on every node. A lock guards a region of bytes in some node's memory, and is named by the region's address. Whoever
//! gets the lock gets the region with it, in the same message; both stay on the node that used them last. So a lock that a
//! node has is entered and left without a message: one atomic operation each.
//!
//! | file | holds |
//! | --- | --- |
//! | `typed.rs` | [`Locked`]: a value behind a lock, and its guards |
//! | `bytes.rs` | [`LockedBytes`]: a region of plain bytes |
//! | `held.rs` | a held lock as [`LockMemory`](crate::LockMemory) has it, for applications that run on simulated racks, too |
//! | `inside.rs` | entering and leaving, for all of them |
//! | `lasting.rs` | the same where locks and data outlive nodes |
//! | `header.rs` | the words in front of a value: poison, and fencing numbers |
//! | `making.rs` | regions made and taken away, without their type |
//! | `view.rs` | the words of a region as values and bytes: the unsafe code |
//! | `regions/` | [`LockedRegions`] and [`LockedParts`]: several regions behind one lock |
//! | `error.rs` | what can go wrong |
//!
//! What must always hold: a guard exists only while its thread is inside the gate of the copy that it shows, in the guard's mode;
//! so references into the copy are as exclusive as the lock.

mod bytes;
mod error;
pub(crate) mod header;
mod held;
mod inside;
pub(crate) mod lasting;
mod making;
mod regions;
mod typed;
mod view;

pub use bytes::{BytesReadGuard, BytesWriteGuard, LockedBytes};
pub use error::LockError;
pub(crate) use header::fence as fence_of;
pub use held::HeldLock;
pub use inside::region_of;
pub(crate) use making::{Counts, make_region, probe_region, try_free_region};
pub(crate) use regions::mapped::AllViews;
pub use regions::{
    HeldRegions, LockedParts, LockedRegions, Many, MappedReadGuard, MappedRegions, MappedWriteGuard, Part,
    Parts, PartsGuard, PartsReadGuard, PartsWriteGuard, RegionsError, RegionsReadGuard, RegionsWriteGuard,
};
pub use typed::{Locked, LockedReadGuard, LockedWriteGuard};
