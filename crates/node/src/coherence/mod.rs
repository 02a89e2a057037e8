//! Coherent blocks, as a node has them: FlowCC's requesters, agents and homes (Concordia, sections 4 and 5).
//!
//! | file | holds |
//! | --- | --- |
//! | `node.rs`, `on_packet.rs` | [`Node`](node::Node): all of these behind one door, and which of them a packet is for |
//! | `requester/` | a thread's event: asks, collects answers, unlocks |
//! | `cache_agent/` | gives copies away to other nodes |
//! | `home/` | memory, and the entries that the switch does not keep |
//! | `allocation/` | chunks and allocations |
//! | `shadow/` | on one node: which blocks deserve the switch |
//! | `copies/` | memory that outlives its node: what of a dead node's writes survives |
//! | `recovery/` | what a node reports in a new epoch, and what its home makes of it |
//! | `canonical.rs` | states that cannot be told apart, for searches |
//! | `config.rs`, `message.rs`, `counters.rs`, `context.rs`, `round_trip.rs`, `window.rs` | what they share |

mod allocation;
mod cache_agent;
pub mod canonical;
pub(crate) mod config;
mod context;
pub(crate) mod copies;
pub(crate) mod counters;
pub mod home;
pub(crate) mod message;
pub(crate) mod node;
mod on_packet;
pub(crate) mod recovery;
pub(crate) mod requester;
mod round_trip;
mod shadow;
pub mod window;
