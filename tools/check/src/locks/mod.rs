//! Locks that carry their data as a [`World`](crate::rack::World): the real machines, a plain store, and threads that enter,
//! leave, give up and free.
//!
//! Regions carry a number instead of bytes: that of the last write. After every step the [`properties`] are checked.
//!
//! | file | holds |
//! | --- | --- |
//! | `plan` | what a run is like |
//! | `store` | copies, gates and home memory with numbers |
//! | `world` | the world: machines, threads, and what is true |
//! | `allocations` | locks that end, and begin anew |
//! | `threads` | what application threads do, and what they must find |
//! | `facts` | what the properties look at |
//! | `describe` | what is shown of a lock |
//! | [`properties`] | what must hold, one property a file |

mod allocations;
mod describe;
mod facts;
mod plan;
pub mod properties;
mod store;
mod threads;
mod world;

pub use plan::{LockPlan, Plan};
pub use store::{Frame, PlainLocks};
pub(crate) use threads::who_is_told;
pub use threads::{Thread, Want};
pub use world::{Locks, Seen};

/// A rack of locks.
pub type LockRack<R = wire::AllRules> = crate::rack::Rack<Locks<R>, node::LockMessage>;
/// What a run of it did.
pub type Report = crate::rack::Report<Seen>;
