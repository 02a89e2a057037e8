//! A place of a live rack: one protocol machine under a lock, with what is left for it, and the threads that wait for
//! what it does. Every kind of live rack is made of these; they differ in who carries messages between them
//! (`Carrier`).
//!
//! | file | holds |
//! | --- | --- |
//! | `inbox.rs` | a machine, its lock and its inbox |
//! | `switch_place.rs`, `node_place.rs` | the two kinds of machines in their places |
//! | `drain.rs` | the loop over a node's inbox |
//! | `courier.rs` | what a thread needs to run machines |
//! | `operations.rs` | what application threads ask of their node, and how they wait for it |
//! | `lock_operations.rs` | the same for the locks that carry their data |
//! | `outcome.rs` | what their operations come to |

mod courier;
mod drain;
mod inbox;
mod lock_operations;
mod node_place;
mod operations;
mod outcome;
mod switch_place;

pub(crate) use courier::Bell;
pub use courier::Courier;
pub(crate) use inbox::{Input, Place};
pub use lock_operations::Wait;
pub(crate) use node_place::{LocksPlace, NodePlace};
pub(crate) use operations::{Carrier, Visit};
pub use operations::{Fetched, Operations};
pub use outcome::{Allocated, Failure};
pub(crate) use switch_place::SwitchPlace;
