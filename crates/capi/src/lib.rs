//! rackmem for C: reader-writer locks that carry their data. Part of the application's process; the header is
//! `include/rackmem.h`, made from these files by cbindgen and compared with them in a test.
//!
//! | file | holds |
//! | --- | --- |
//! | `status.rs` | what calls return, and the message of the last failure |
//! | `rack.rs` | racks, and the threads that use them |
//! | `rwlock.rs` | locks |
//! | `pointer.rs` | what comes from C, checked as far as it can be |
//!
//! What must always hold: no panic crosses into C (every function runs inside `status::guarded`), and a null pointer is
//! refused, not followed. What C has to keep to is said at each function; that is all the unsafe code relies on.
//!
//! The data of a lock begin behind a word that says whether they are poisoned, as those of `rackmem::Locked` do. So a lock
//! of `sizeof(T)` bytes here is the same lock as a `Locked<T>` of a Rust program in the same rack.

mod pointer;
pub mod rack;
pub mod rwlock;
pub mod status;
