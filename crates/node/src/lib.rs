//! What a server of the rack runs.
//!
//! ```text
//!   application threads ──hit──> frames of the cache (the driver's, see `store`)
//!        │ miss                      ^
//!        v                           │ publish, downgrade, withdraw
//!   ┌─ requester ──────────── cache_agent ───────── home ──────────── allocation ── shadow ─┐
//!   │  asks, collects         gives copies away     memory, entries   chunks and    (one    │
//!   │  answers, unlocks       to other nodes        that the switch   allocations    node)  │
//!   │                                               does not keep                           │
//!   └───────────────────────────────────────────────────────────────────────── one `Node` ──┘
//! ```
//!
//! All of it is plain state machines without I/O, clock, thread or randomness of their own: [`Node`] states the
//! call contract. Bytes stay with the driver: [`store`] is the seam.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod allocation;
pub mod allocator;
mod cache_agent;
pub mod canonical;
mod config;
mod context;
mod counters;
pub mod home;
pub mod locks;
mod message;
mod node;
mod on_packet;
mod rack_node;
mod recovery;
mod requester;
mod round_trip;
mod shadow;
pub mod store;
pub mod window;

pub use config::{Backoff, Config, Directory, Peeks, Retransmission, Turn};
pub use counters::{Counters, Drop};
pub use locks::{LockEffect, LockMessage, LockNode, LockStore, Ticket};
pub use message::{Effect, Message, Outcome, Started};
pub use node::Node;
pub use rack_node::RackNode;
pub use recovery::View;
pub use requester::inspect::Pending;
pub use requester::peek::peeked_bytes;
pub use store::{Access, DataRef, FrameId, Moment, Pinned, Reservation, Store};
pub use window::Window;
