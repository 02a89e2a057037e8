//! Coherent blocks as a [`World`](crate::rack::World): the real machines, a plain store, and threads that allocate, read, write,
//! lock and free.
//!
//! Blocks carry a stamp instead of bytes: the number of the last write. After every step the [`properties`] are checked.
//!
//! | file | holds |
//! | --- | --- |
//! | `plan` | what a run is like |
//! | `store` | frames and home memory with stamps |
//! | `blocks` | the world: machines, threads, and what is true |
//! | `threads`, `workload` | application threads that allocate, read, write, lock and free |
//! | `survival` | what of a dead node's writes may be seen |
//! | `recovery` | what stops and starts again, as far as blocks are concerned |
//! | `describe` | what is shown of blocks |
//! | `coverage` | what the machines were seen to do |
//! | [`properties`] | what must hold, one property a file |

mod blocks;
mod coverage;
mod describe;
mod plan;
pub mod properties;
mod recovery;
mod store;
pub(crate) mod survival;
mod threads;
mod workload;

pub use blocks::{Blocks, Seen};
pub use coverage::Coverage;
pub use plan::{BlockPlan, Plan};
pub use store::{Frame, PlainStore};
pub use threads::Thread;

/// A rack of coherent blocks.
pub type Rack<R = wire::AllRules> = crate::rack::Rack<Blocks<R>, node::Message>;
/// What a run of it did.
pub type Report = crate::rack::Report<Seen>;
