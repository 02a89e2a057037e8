//! The testbed of the steering paper in virtual time (section 4): clients of Clover on two machines, memory and metadata server on
//! a third one, and a fourth that is the switch. ConnectX-5 everywhere, and an Onyx switch that sends all of it through the fourth.
//!
//! ```text
//!  client threads, 2 machines     Onyx      the "ToR", software      Onyx      server
//!   ─ post ─> NIC ──────────────> │ ──────> NIC ─> program ─> NIC ──> │ ──────> NIC ──> memory: READ, WRITE
//!                                                                                  └──> atomics, one at a time
//!   <─ poll ─ NIC <────────────── │ <────── NIC <─ program <─ NIC <── │ <────── NIC <──┘
//!                                                                     metadata server: calls, notices
//! ```
//!
//! What runs on it is what runs in racks: clients and metadata server of `crates/chain`, queue pairs of `crates/nic`, and the program
//! of `switch::chains`. Each client thread has a queue pair and one operation in flight. The threads of a machine share a client, so that
//! what one of them learns of a tail the others know, as in Clover's library.
//!
//! | file | what |
//! | --- | --- |
//! | `testbed`, `threads` | what happens next, and what threads do |
//! | `connecting` | connections begin, and begin anew |
//! | `bench`, `load`, `report` | all constants, with their sources; what is run, what it gave |
//! | `adapter` | a NIC's engines and its link |
//! | `network` | the way of a sim_message: from machine to machine, through the switch |
//! | `tor` | the fourth machine |
//! | `server`, `atomics`, `entries` | the third: its NIC, what it executes one by one, and the memory |
//! | `filling` | keys and cursors, before time begins |
//! | `event` | what happens, and what travels |
//!
//! What is watched (`entries`): an append goes behind an entry of the same key, once, and is in the chain when its client hears that it is;
//! a get returns nothing older than what had been acknowledged when it began.
//!
//! What is not modelled: cores that threads share, locks inside of the clients' library, bytes of values (heads of entries are there).

mod adapter;
mod bench;
mod connecting;
mod entries;
mod event;
mod filling;
mod load;
mod network;
mod report;
mod server;
mod testbed;
#[cfg(test)]
mod tests;
mod threads;
mod tor;
mod words;

pub use bench::Bench;
pub use load::{Ask, Load, Requests};
pub use report::{ChainsReport, Trips};
pub use testbed::Testbed;
