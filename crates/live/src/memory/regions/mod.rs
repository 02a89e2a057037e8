//! Regions of a home's memory for one-sided operations: words that anybody changes by atomic operations, and objects that
//! anybody reads whole. Nothing of them is ever cached.
//!
//! Runs in the process that has the home's memory, on whichever thread asks: of an application in the same process, whose
//! processor is the nearest place that can do it, or of a driver that brings operations from the network. Both use the same
//! functions on the same atomic words, so their operations are atomic with each other.
//!
//! | file | holds |
//! | --- | --- |
//! | `table.rs` | [`Regions`]: what is allocated in a home's memory for this, by address |
//! | `region.rs` | [`Region`]: one allocation, and finding its words |
//! | `region/bytes.rs` | bytes of it as they are: READ and WRITE |
//! | `words.rs` | [`execute`]: an operation on a word, by the processor's own atomics |
//! | `objects.rs` | [`Object`]: version, copy, version; and the writer's side |
//! | `shared.rs` | regions that other processes of this machine have mapped; writers that die |
//! | `held.rs` | a part of something, and what keeps it alive |
//!
//! What must always hold: a region that has ended is never found alive again, even if its memory is used anew. What a writer has
//! left half-written is never read as whole.

mod held;
mod objects;
mod region;
mod shared;
mod table;
mod words;

pub use nic::regions::Shape;
pub use objects::{Object, Taking, Torn, Writing};
pub use region::{Missing, Region};
pub use shared::NotMapped;
pub use table::Regions;
pub use words::{execute, execute_fold};
