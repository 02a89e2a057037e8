//! One shared memory for a rack of machines: the public API.

mod error;
mod memory;

pub use error::Error;
pub use memory::{Memory, block_on};
pub use node::Window;
pub use wire::{BlockSize, Discipline, GlobalAddr, Nanos, NodeId};
