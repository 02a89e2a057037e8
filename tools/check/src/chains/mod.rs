//! Stores of chains, and what a rack does to them: a part of the [`joint`](crate::joint) world.
//!
//! Threads make stores: memory of one node, which was a block, a lock or a region before and becomes one after, and a metadata server
//! on one. Clients on all nodes get, put and delete through queue pairs of their nodes' NICs ([`regions`](crate::regions)), whose
//! packets pass the switch, which steers in some runs. A store is over when somebody ends it, or with the node of its memory or
//! of its metadata server.
//!
//! | file | holds |
//! | --- | --- |
//! | `plan` | what a run is like |
//! | `times` | how long what somebody knows counts |
//! | `store` | a store; what is asked of other nodes for it |
//! | `rig` | what clients and servers ask of the rack, and what nodes do that are asked |
//! | `port` | a client's queue pair |
//! | `session` | a client |
//! | `server` | a metadata server |
//! | `threads` | application threads |
//! | `truth` | what clients were told, and what must hold of it |
//! | `world` | all of it, with the switch's relay, as the joint world calls it |
//! | `seen` | what was done |

mod plan;
mod port;
mod rig;
mod seen;
mod server;
mod session;
mod store;
mod threads;
mod times;
mod truth;
mod world;

pub use plan::ChainPlan;
pub use seen::Seen;
pub use world::Chains;

use store::Store;
