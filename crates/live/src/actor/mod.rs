//! An actor of a live rack: protocol machines under a lock, with an inbox of messages for them, and the threads that wait
//! for what they do. Every kind of live rack is made of these; they differ in the driver that delivers
//! messages between them (`Driver`).
//!
//! | file | holds |
//! | --- | --- |
//! | `inbox.rs` | the actor: machines, their lock and their inbox |
//! | `switch_programs.rs`, `node_machines.rs` | what the actor of the switch has under its lock, and what that of a node |
//! | `drain.rs` | the loop over a node's inbox |
//! | `context.rs` | what a thread needs to run machines |
//! | `at_node.rs` | what application threads can ask of their node |
//! | `operations.rs` | how they get it, and wait for it |
//! | `outcome.rs` | what their operations come to |

mod at_node;
mod context;
mod drain;
mod inbox;
mod node_machines;
mod operations;
mod outcome;
mod switch_programs;

pub use at_node::AtNode;
pub use context::ThreadContext;
pub(crate) use context::Waker;
pub(crate) use drain::drain;
pub(crate) use inbox::{Actor, Input};
pub(crate) use node_machines::NodeMachines;
pub(crate) use operations::Driver;
pub use operations::Wait;
pub use outcome::{Allocated, Failure, Fetched};
pub(crate) use switch_programs::SwitchPrograms;
