//! A whole rack in one process, without threads of its own.
//!
//! The rack has an *actor* for the switch and one for each node: machines under a lock, with an inbox. The thread that
//! sends a message puts it into the receiver's inbox, still under the lock of the sender's actor, and then runs
//! the receiver's machine itself if nobody else is. So an uncontended miss is a chain of calls on the thread
//! that missed: no wake-up, no hand-over.
//!
//! What must always hold:
//! - A thread holds the lock of at most one actor at a time (an inbox's lock is a leaf and is held for a push).
//! - Messages from one actor to another are handled in the order in which they were sent: they enter the inbox
//!   under the sender's lock, and the inbox is drained in order under the receiver's. One inbox for each actor keeps
//!   more order than one a pair would, and costs one look instead of as many as there are actors.
//! - A thread that holds an actor's lock drains its inbox, and looks once more after letting go: no message is left behind.
//! - Nothing is lost, so nothing is sent again: a thread that was preempted with an actor locked is away for a
//!   scheduler's slice, and the others wait for it.
//!
//! | file | holds |
//! | --- | --- |
//! | `rack.rs` | the actors together |
//! | `driver.rs` | the driver: each thread delivers messages between them |
//! | `chains.rs` | chains: NICs, and the switch between them |

mod chains;
mod driver;
mod rack;

pub use rack::InlineRack;
