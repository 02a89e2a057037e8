//! FlowCC in the switch: the directory of hot blocks, and the lock-check-forward pipeline on it (Concordia,
//! sections 5.1 to 5.3).
//!
//! | stage | register arrays | tables |
//! | --- | --- | --- |
//! | 0 | LAST-UNLOCK: the last number unlocked, per requester and parity | |
//! | 1..=7 | TAG of ways 0..=6 | |
//! | 2..=8 | LOCK, G-STATUS, COPYSET of ways 0..=6, each behind its TAG | 8: placement |
//! | 9 | SCOREBOARD: what became of the event, per requester and parity | |
//! | 10 | | decide, check |
//! | 11 | | forward |
//!
//! | module | holds |
//! | --- | --- |
//! | [`tables`], [`fan_out`](mod@fan_out) | what the switch and the home agents decide alike |
//! | `layout` | fields, codes and the score word |
//! | [`wait_queue`](mod@wait_queue) | with `queue`: who waits behind whom |
//! | `program` | the steps |
//! | `pass` | the kinds of pass, and what the arrays do in each |
//! | `parser` | packets to PHV |
//! | `deparser` | PHV to packets |
//! | `kernel` | the program for the kernel's virtual machine |
//! | [`switch`] | the machine: packets in, effects out |
//! | [`inspect`] | entries, requesters and invariants, for tests and tools |
//! | [`canonical`] | the state as a value, for checkers that explore all states |
//! | [`counters`] | what happened, by cause |
//!
//! # What must always hold
//! - Every event ends with an acknowledged UNLOCK, a refused one too; nothing else releases a lock. So the
//!   answer to a repeated request is the answer to the first: what became of an event stands in its
//!   SCOREBOARD cell until the unlock.
//! - An UNLOCK raises LAST-UNLOCK in its first pass, before it reads the score. From then on no duplicate of the
//!   request can take a lock, and the score that the second pass releases is the whole score.
//! - The switch records every unlock and filters every request, whoever keeps the entry.
//! - A locked entry stays: only the holder of its write lock clears its tag.
//! - A tag is in at most one way: an ADD decides on its way once (see [`switch`]).
//!
//! # Whom it trusts
//! A requester uses a number for one request only, and its UNLOCK names the block that the request named, and new
//! metadata that follow from what it was told. The switch has no memory to check that; packets that break it can
//! hurt the blocks they name, but neither corrupt lock words nor stop the switch.

pub mod canonical;
pub mod counters;
mod deparser;
pub mod fan_out;
pub mod inspect;
mod kernel;
mod layout;
mod parser;
mod pass;
mod program;
mod sets;
pub mod switch;
pub mod tables;
pub mod wait_queue;

pub use counters::{Counters, Drop};
pub use inspect::{Dump, EntryView, RequesterView};
pub use sets::set_of;
pub use switch::{Carried, Effect, Resubmit, Switch, SwitchConfig};
