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

pub mod allocator;
pub mod coherence;
pub mod locks;
mod rack_node;
pub mod store;

pub use coherence::config::{Backoff, Directory, HoldTime, NodeConfig, Peeks, Retransmission};
pub use coherence::counters::{Counters, Drop};
pub use coherence::message::{Effect, Message, Outcome, Started};
pub use coherence::node::Node;
pub use coherence::recovery::{Kept, Placement, View};
pub use coherence::requester::inspect::Pending;
pub use coherence::requester::peek::peeked_bytes;
pub use coherence::window::Window;
pub use locks::{LockEffect, LockMessage, LockNode, LockStore, Ticket};
pub use rack_node::RackNode;
pub use store::{Access, DataRef, FrameId, Moment, Pinned, Reservation, Store};
