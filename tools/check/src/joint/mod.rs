//! Blocks, locks, words, objects and chains in one rack: the machines of a whole node and of the switch, with the real allocator.
//!
//! Allocations of every discipline come and go at the same addresses, while the switch and nodes die. Threads of both worlds
//! run side by side, each with what they check: [`coherence`](crate::coherence) that a block is what was written last, and
//! [`locks`](crate::locks) the same of regions. A node's memory is one for both, so that what comes back late to memory that
//! belongs to another discipline by now is seen. A lock's region lives as long as the home's table of live blocks says so; a
//! thread inside has it freed by the allocator that gave it out. Words and objects are used through the nodes' NICs
//! ([`regions`](crate::regions)), in the same memory; and so are stores of chains in one run of three
//! ([`chains`](crate::chains)), whose packets pass the switch, which steers in some of those.
//!
//! | file | holds |
//! | --- | --- |
//! | `plan` | what a run is like |
//! | `world` | the world: all of them, on the machines of whole nodes |

mod plan;
mod world;

pub use plan::{JointPlan, Plan};
pub use world::{Joint, Packet, Seen};

use wire::AllRules;

/// A rack of all of them.
pub type Rack<R = AllRules> = crate::rack::Rack<Joint<R>, Packet>;
/// What a run of it did.
pub type Report = crate::rack::Report<Seen>;
