//! A software NIC: what stands between the network and a server's memory.
//!
//! ```text
//!   application ── work requests ──> queue pair: requester ══ RoCEv2 ══ responder ──> memory
//!        ^                                │                  (`wire::roce`)    │
//!        └───── completion queue <────────┘                                    └─ atomics: the driver's `Memory`
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`words`] | remote atomics: miss-status registers that merge, or folds for memory that processors change too |
//! | [`connections`] | a node's queue pairs to all others: which incarnations they connect, how they begin anew |
//! | [`regions`] | allocations that others use: how they begin, are found, are named by keys, and end |
//! | [`objects`] | whole-object reads, validated where the memory is |
//! | [`verbs`] | memory regions and keys, reliable-connected queue pairs, completion queues |
//!
//! All of it is plain state machines without I/O, clock, thread or randomness of their own, under the call contract of
//! the protocol core: one input at a time, the time is given, effects go into the caller's buffer, the next deadline is
//! named, being called early is harmless, and whatever is malformed, late or hostile is dropped and counted by cause.
//! The machines never hold bytes: they name a key, an address and a length, and the driver moves them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod connections;
pub mod objects;
pub mod regions;
pub mod verbs;
pub mod words;
