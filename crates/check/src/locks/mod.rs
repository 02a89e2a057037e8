//! A small rack of locks that does its worst: the real machines, a plain store, and a network that loses, duplicates and
//! reorders whatever it likes.
//!
//! One thread, one seed: every choice comes from the seed, so that a run can be repeated. Regions carry a number
//! instead of bytes: that of the last write. After every step the [`properties`] are checked.
//!
//! | file | holds |
//! | --- | --- |
//! | `plan` | what a run is like |
//! | `store` | copies, gates and home memory with numbers |
//! | `network` | packets under way, and what happens to them |
//! | `allocations` | locks that end, and begin anew |
//! | `control` | what stops and starts again, and who is told of it |
//! | `run` | the rack, step by step |
//! | `threads` | what application threads do, and what they must find |
//! | `fuzz` | runs of a seed |
//! | [`properties`] | what must hold, one property a file |

mod allocations;
mod control;
mod fuzz;
mod network;
mod plan;
pub mod properties;
mod run;
mod store;
mod threads;

pub use control::LockStops;
pub use fuzz::{Effort, run_seed};
pub use network::Place;
pub use plan::Plan;
pub use run::{LockRack, Report};
pub use store::{Frame, PlainLocks};
pub use threads::{Thread, Want};
