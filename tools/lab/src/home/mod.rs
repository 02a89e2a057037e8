//! What the baselines have in common: the memory of a home node, its allocations, its application locks.
//!
//! FlowCC brings its own. What must always hold: nothing here has a clock, an order that depends on hashing, or a
//! random source.

mod blocks;
mod heap;
mod locks;
mod paged;
mod payloads;

pub use blocks::{Blocks, Value};
pub use heap::Heap;
pub use locks::{Asked, LockTable};
pub use paged::Paged;
pub use payloads::{Payload, Payloads};
