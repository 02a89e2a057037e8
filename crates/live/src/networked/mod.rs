//! A rack of processes: the switch is one, and each node is one. Messages travel through a
//! [`Transport`](transport::Transport): rings in shared memory on one machine, UDP between machines.
//!
//! ```text
//!   node's process                                              switch's process
//!     application threads ── hit ──> cache                        FlowCC
//!        │ miss                                                   coordinator: who is alive
//!        v
//!     actor: the node's machines ── dispatch ──> transport ─────────> ...
//!        ^                                          │
//!        └──── poll: whoever waits receives  <──────┘
//!     service thread: receives when nobody waits; deadlines; beats; the lease
//! ```
//!
//! What must always hold:
//! - Whoever waits for an answer receives for the whole node. The service thread sleeps meanwhile; it is woken for what
//!   comes while nobody waits, so a node answers also while its application computes.
//! - Lock order: receiving, then the actor or the NIC; what the node was told, then the membership, then the actor. Nothing is
//!   sent to this process itself.
//! - Packets may be lost, so the machines send again (`Retransmission::AfterRoundTrips`).
//! - A node that the coordinator takes for dead does nothing any more: no hit, no packet ([`lease`]).
//!
//! | file | holds |
//! | --- | --- |
//! | `node.rs` | a node's process: joining, fencing, leaving |
//! | `draining.rs` | before it leaves: others get what it keeps |
//! | `driver.rs` | its threads and the messages |
//! | `service.rs` | the thread that works when no other does |
//! | `verbs/` | a software NIC: operations on the memory of other nodes |
//! | `chains.rs` | chains: verbs through the switch, calls, metadata servers |
//! | `mapped.rs` | mapped memory: mapping, and getting pages |
//! | `faults.rs` | what is done for threads that wait in a fault, or by them |
//! | `names.rs` | what nodes ask of each other about names |
//! | `lease.rs` | until when a node may trust what it has |
//! | `switch.rs` | the switch's process |
//! | `listing.rs` | the list of nodes, which may become longer |
//! | `plane.rs` | where its coherence program runs if not in it |
//! | `log.rs` | what their operators must know |
//! | `report.rs` | what it tells whoever asks how the rack is |
//! | `in_flight.rs` | what a node is in the middle of, for whoever looks at a rack that does not get on |

mod chains;
mod draining;
mod driver;
mod faults;
mod in_flight;
pub mod lease;
mod listing;
mod log;
mod mapped;
mod names;
mod node;
mod plane;
mod report;
mod service;
mod switch;
#[cfg(test)]
mod turns_tests;
pub mod verbs;

pub use self::draining::Draining;
pub use self::listing::Listing;
pub use self::mapped::NotMapped;
pub use self::names::NameServer;
pub use self::node::{JoinError, NetworkedNode, NodeSetup};
pub use self::plane::{DataPlane, PlaneReport};
pub use self::report::{MemoryStatus, NodeReport, NodeStatus, SwitchReport, Watch};
pub use self::switch::{Ended, NetworkedSwitch, SwitchSetup};
