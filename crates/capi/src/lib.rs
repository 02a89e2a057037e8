//! rackmem for C: what the crate `rackmem` has, as functions. Part of the application's process; the header is
//! `include/rackmem.h`, made from these files by cbindgen and compared with them in a test.
//!
//! | file | holds |
//! | --- | --- |
//! | `status.rs` | what calls return, the message of the last failure, the version |
//! | `handles.rs` | what C has instead of pointers, and who may use it when |
//! | `pointer.rs` | the other pointers that come from C, checked as far as they can be |
//! | `rack.rs` | racks, what they have counted, and the threads that use them |
//! | `blocks.rs` | coherent memory, and the locks of blocks |
//! | `mapping.rs` | coherent memory behind pointers |
//! | `rwlock.rs` | locks that carry their data |
//! | `regions.rs` | such locks over several regions |
//! | `words/` | atomic operations |
//! | `objects.rs` | objects that are read whole |
//! | `chains.rs` | key-value stores |
//! | `value.rs` | values with names |
//! | `names.rs` | all of these by name |
//!
//! What must always hold: no panic crosses into C (what may panic runs inside `status::guarded`), and a null pointer or a handle that
//! is not open is refused, not followed. What C has to keep to is said at each function; that is all the unsafe code relies on.
//!
//! Accesses that take no message are as short as in Rust: they look their handles up, do what a hit does, and leave all else to a
//! function behind them.

pub mod blocks;
pub mod chains;
mod handles;
pub mod mapping;
pub mod names;
pub mod objects;
mod pointer;
pub mod rack;
pub mod regions;
pub mod rwlock;
pub mod status;
pub mod value;
pub mod words;
