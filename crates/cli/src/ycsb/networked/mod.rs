//! YCSB on a rack of processes: one for each node, with its clients, and one for the switch.
//!
//! What each process does is in `node`; what the command tells them, and what it makes of their answers, in `command`.
//! Load and run are the same as on an embedded rack, each process with its part of the clients.

mod command;
mod node;

pub use command::measure;
pub use node::place;
