//! The two-level allocator of global memory (Concordia, section 6, "Global memory allocation").
//!
//! Runs on every server, in two halves that never call each other; what passes between them is packets, and
//! those are not made here:
//!
//! | half | type | what it decides |
//! | --- | --- | --- |
//! | home | [`ChunkTable`] | which node's allocator has which chunk of this home's memory, for which discipline; which blocks are live |
//! | node | [`Allocator`] | which bytes of the chunks that this node was granted an allocation gets |
//!
//! A node asks a home for a huge chunk ([`ChunkSize::DEFAULT`]: 32 MiB) and cuts allocations out of it without
//! asking again. A block's way through the two halves:
//!
//! ```text
//! granted ─ alloc ─> fresh ─ home marks it live ─> marked ─ last object freed ─> quarantined
//!    ^                                                                              │
//!    └────────────────────── reclaim, once no node caches it any more <─────────────┘
//! ```
//!
//! What must always hold ([`Allocator::assert_invariants`], [`ChunkTable::assert_invariants`]):
//! - No byte belongs to two live allocations, on whichever nodes they were made, and none to address 0: the
//!   first block of every home is never handed out.
//! - A block holds allocations of one discipline: its chunk is granted for one, and changes hands only when
//!   none of its blocks is live. "An address obeys one discipline all its life" is a matter of arithmetic.
//! - A block that held an allocation holds no other one before [`Allocator::reclaim`]: until then some node
//!   may still have a copy of the old contents.
//! - Whatever address is freed, however often: a typed error, and nothing has changed.
//!
//! Both halves are plain data: no packets, no time, no randomness, and no order that comes from a hash map.

mod add_chunk;
mod allocate;
mod chunk_table;
mod classes;
mod extents;
mod forget_home;
mod free;
mod free_bits;
mod geometry;
mod held_chunks;
mod invariants;
mod live_blocks;
mod node_side;
mod range;
mod slabs;

pub use add_chunk::ChunkRefused;
pub use allocate::Outcome;
pub use chunk_table::{ChunkTable, GiveBackRefused, MarkRefused, OutOfMemory, Step};
pub use free::{Freed, NotAnAllocation, NotQuarantined};
pub use geometry::ChunkSize;
pub use node_side::{Allocator, Usage};
pub use range::BlockRange;
