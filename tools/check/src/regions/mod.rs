//! Words and objects, and what the NICs of a rack do to them: a part of the [`joint`](crate::joint) world.
//!
//! Every node has a real [`Device`](::nic::verbs::Device) with a queue pair to each other node. Threads begin regions in what was
//! allocated, add to words, read and write objects, end regions, and give the memory back, which then is a block, a lock or
//! another region. Packets lose, duplicate and reorder like all others.
//!
//! | file | holds |
//! | --- | --- |
//! | `plan` | what a run is like |
//! | `nic` | a node's device, its connections, and the bytes that it names |
//! | `memory` | what the device does to the node's memory; what the home does that is asked for |
//! | `threads` | application threads |
//! | `begin` | what a thread does next |
//! | `truth` | every region that there was, and what must hold of it |
//! | `calls`, `ends` | what is asked of homes; how operations end |
//! | `world` | all of it, as the joint world calls it |
//! | `chained` | queue pairs of [`chains`](crate::chains) on the same devices |
//! | `properties` | what must hold of memory |
//! | `seen` | what was done |
//! | `describe` | who waits for what |

mod begin;
mod calls;
pub(crate) mod chained;
mod describe;
mod ends;
mod memory;
mod nic;
mod plan;
mod properties;
mod seen;
mod threads;
mod truth;
mod world;

pub use nic::{Body, Message, Payload};
pub use plan::RegionsPlan;
pub use seen::Seen;
pub use world::Regions;
