//! One-sided verbs over the reliable-connected transport: READ, WRITE, SEND, CmpSwap, FetchAdd, and ours: batches of remote
//! atomics, and whole-object reads.
//!
//! At both ends of a connection, in every node. A [`Device`] has memory regions, queue pairs and completion queues. A
//! queue pair is two machines: its requester sends what was posted and waits for answers; its responder executes what
//! the other end sends. They share nothing but the state of the pair and its fate.
//!
//! Packets have numbers (PSNs). The responder executes them in order, each once. What is missing is asked for again by
//! a NAK, or after a time without an answer, from the first missing one on (go-back-N). Repeated WRITEs and SENDs are
//! acknowledged, repeated READs read again. Repeated atomics and object reads are answered from a replay cache, which holds what
//! single words were; answers that are longer are kept by the driver, in slots.
//!
//! What must always hold: a byte outside a region, or inside one without the permission, is never named by an effect;
//! an atomic is executed once however often its packet comes; what is sent of an object for one request is one snapshot;
//! completions come in the order of the posted work.
//!
//! A WRITE from one device to another, with everything that a driver does on the way:
//!
//! ```
//! use nic::verbs::*;
//! use wire::roce::{Key, Psn, Verdict};
//! use wire::{Nanos, NodeId};
//!
//! struct NoAtomics;
//! impl Memory for NoAtomics {
//!     fn read_word(&mut self, _: Key, _: u64) -> u64 { 0 }
//!     fn compare_swap(&mut self, _: Key, _: u64, _: u64, _: u64) -> u64 { 0 }
//!     fn fetch_add(&mut self, _: Key, _: u64, _: u64) -> u64 { 0 }
//!     fn atomics(&mut self, _: &Regions, _: Slot) -> Result<u32, Refused> { Err(Refused::Invalid) }
//!     fn snapshot(&mut self, _: Key, _: u64, _: u32, _: Slot) -> Result<Verdict, Refused> {
//!         Err(Refused::Invalid)
//!     }
//! }
//!
//! // Two nodes, each with eight bytes at address 4096, a completion queue and a queue pair.
//! let mut memory = [*b"rackmem!", [0; 8]];
//! let mut devices: [Device; 2] = [Device::new(8), Device::new(8)];
//! let region = Region { base: 4096, len: 8, access: Access::ALL };
//! let keys = devices.each_mut().map(|device| device.register(region).unwrap());
//! let queues = devices.each_mut().map(|device| device.create_completion_queue(64));
//! let depth = Depth { sends: 16, receives: 16 };
//! let pairs = [0, 1].map(|at: usize| devices[at].create_queue_pair(queues[at], queues[at], depth));
//! for at in [0, 1] {
//!     let peer = NodeId(1 - at as u16);
//!     devices[at].init(pairs[at])?;
//!     devices[at].ready_to_receive(pairs[at], ToReceive::new(peer, pairs[1 - at], Mtu::B1024, Psn::new(7)))?;
//!     devices[at].ready_to_send(pairs[at], ToSend::new(Psn::new(7)))?;
//! }
//!
//! let now = Nanos(1);
//! let mut effects = Vec::new();
//! let local = Span { key: keys[0], address: 4096, len: 8 };
//! let remote = Remote { key: keys[1], address: 4096 };
//! let write = Operation::Write { local, remote, immediate: None };
//! devices[0].post_send(now, pairs[0], WorkRequest::new(WorkId(5), write), &mut effects)?;
//!
//! // A packet there, and an acknowledgement back.
//! while let Some(Effect::Send { to, packet, payload, .. }) = effects.pop() {
//!     let (at, from) = (usize::from(to.0), NodeId(1 - to.0));
//!     let len = payload.map_or(0, |payload| payload.bytes());
//!     devices[at].on_packet(now, from, &packet, len, &mut NoAtomics, &mut effects);
//!     if let Some(Effect::Place { .. }) = effects.first() {
//!         memory[at] = memory[1 - at];
//!         effects.remove(0);
//!     }
//! }
//! assert_eq!(&memory[1], b"rackmem!");
//! assert_eq!(devices[0].poll(queues[0]).unwrap().status, Status::Success);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attributes;
mod batch;
mod completion;
mod counters;
mod device;
mod effect;
mod queue_pair;
mod region;
mod requester;
mod responder;
mod work;

pub use attributes::{Depth, Mtu, QueuePairState, StateError, ToReceive, ToSend};
pub use completion::{CompletionQueue, CqNumber};
pub use counters::{Counters, Drop};
pub use device::Device;
pub use effect::{Effect, Memory, Payload, Refused, Slot, Span};
pub use region::{Access, Region, RegionError, Regions};
pub use work::{Completion, Operation, PostError, Receive, Remote, Status, WorkId, WorkRequest};
