//! One-sided verbs over the reliable-connected transport: READ, WRITE, SEND, CmpSwap, FetchAdd.
//!
//! At both ends of a connection, in every node. A [`Device`] has memory regions, queue pairs and completion queues. A
//! queue pair is two machines: its requester sends what was posted and waits for answers; its responder executes what
//! the other end sends. They share nothing but the state of the pair and its fate.
//!
//! Packets have numbers (PSNs). The responder executes them in order, each once. What is missing is asked for again by
//! a NAK, or after a time without an answer, from the first missing one on (go-back-N). Repeated WRITEs and SENDs are
//! acknowledged, repeated READs read again, repeated atomics answered from a replay cache.
//!
//! What must always hold: a byte outside a region, or inside one without the permission, is never named by an effect;
//! an atomic is executed once however often its packet comes; completions come in the order of the posted work.

mod attributes;
mod completion;
mod counters;
mod device;
mod effect;
mod queue_pair;
mod region;
mod requester;
mod responder;
mod work;

pub use attributes::{Depth, Mtu, State, StateError, ToReceive, ToSend};
pub use completion::{CompletionQueue, CqNumber};
pub use counters::{Counters, Drop};
pub use device::Device;
pub use effect::{Effect, Memory, Span};
pub use region::{Access, Region, RegionError, Regions};
pub use work::{Completion, Operation, PostError, Receive, Remote, Status, WorkId, WorkRequest};
