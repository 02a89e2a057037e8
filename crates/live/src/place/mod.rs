//! A place of a live rack: one protocol machine under a lock, with what is left for it, and the threads that wait for
//! what it does. Every kind of live rack is made of these; they differ in the driver that delivers
//! messages between them (`Driver`).
//!
//! | file | holds |
//! | --- | --- |
//! | `inbox.rs` | a machine, its lock and its inbox |
//! | `switch_place.rs`, `node_place.rs` | the two kinds of machines in their places |
//! | `drain.rs` | the loop over a node's inbox |
//! | `context.rs` | what a thread needs to run machines |
//! | `at_node.rs` | what application threads can ask of their node |
//! | `operations.rs` | how they get it, and wait for it |
//! | `outcome.rs` | what their operations come to |

mod at_node;
mod context;
mod drain;
mod inbox;
mod node_place;
mod operations;
mod outcome;
mod switch_place;

pub use at_node::AtNode;
pub use context::ThreadContext;
pub(crate) use context::Waker;
pub(crate) use drain::drain;
pub(crate) use inbox::{Input, Place};
pub(crate) use node_place::NodePlace;
pub(crate) use operations::Driver;
pub use operations::Wait;
pub use outcome::{Allocated, Failure, Fetched};
pub(crate) use switch_place::SwitchPlace;
