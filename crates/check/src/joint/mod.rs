//! Blocks and locks in one rack: the machines of a whole node and of the switch, with the real allocator.
//!
//! Allocations of every discipline come and go at the same addresses, while the switch and nodes die. Threads of both worlds
//! run side by side, each with what they check: [`coherence`](crate::coherence) that a block is what was written last, and
//! [`locks`](crate::locks) the same of regions. A node's memory is one for both, so that what comes back late to memory that
//! belongs to another discipline by now is seen. A lock's region lives as long as the home's table of live blocks says so; a
//! thread inside has it freed by the allocator that gave it out. Words and objects come and go, too: here nobody may do
//! anything with them.
//!
//! | file | holds |
//! | --- | --- |
//! | `plan` | what a run is like |
//! | `world` | the world: both, on the machines of whole nodes |

mod plan;
mod world;

pub use plan::{JointPlan, Plan};
pub use world::{Joint, Packet, Seen};

/// A rack of blocks and locks.
pub type Rack<R = wire::Faithful, L = wire::Faithful> = crate::rack::Rack<Joint<R, L>, Packet>;
/// What a run of it did.
pub type Report = crate::rack::Report<Seen>;
