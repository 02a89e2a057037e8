//! Steering: the switch sees conflicting appends to a chain first, and sends each compare-and-swap to the true tail.
//!
//! In the switch, on the way of one store's one-sided packets, in both directions. Formats: `wire::chains`, `wire::roce`; the store:
//! `crates/chain`.
//!
//! ```text
//!   client                          switch                                     memory
//!     │── WRITE s: {tail v, key k} ──> k is held: s is outstanding ─────────────>│
//!     │<─────────────────────────────────────────────────────────────────────────│
//!     │── CmpSwap x: tail → s ───────> k's tail is t: CmpSwap t: tail → s ───────>│
//!     │                                 k's tail is s from now on                 │
//!     │<── "behind t" ───────────────  t's append is acknowledged: this too <─────│
//! ```
//!
//! | stage | register arrays | tables |
//! | --- | --- | --- |
//! | 1 | NEXT PSN of each connection | |
//! | 2 | | operations; which way held the key; comparisons of an acknowledgement |
//! | 3 | | verdict |
//! | 9 | OUTSTANDING: by slot, which key its entry is of | |
//! | 10 | TAIL of each key; APPEND, of KEY; KEY way 0 | |
//! | 11 | BEHIND, STATE; KEY ways 1 and 2 | |
//!
//! It stands beside FlowCC and the lock directory in what those leave free: [`locks::beside`](crate::locks::beside).
//!
//! | module | holds |
//! | --- | --- |
//! | `layout` | fields and codes |
//! | `program` | the steps |
//! | `parser` | what a packet says, as far as this program looks at it |
//! | `deparser` | what becomes of requests and acknowledgements |
//! | [`machine`] | the machine: packets in, packets out |
//! | `requests`, `answers`, `reads` | what becomes of them |
//! | [`binding`], `bound` | words that are bound to queue pairs: the switch's own queue pairs, and what passes then |
//! | [`config`], `control` | what the control plane chooses, and does |
//! | `keys` | which keys are held: indexes, and who gets them |
//! | `expiry` | what is known of slots is forgotten when it is old |
//! | [`connections`] | queue pairs that are known, and those that are not |
//! | [`counters`] | what was done, and left, by cause |
//! | [`inspect`] | tails and appends, for tests and tools |
//!
//! # An append that runs ahead
//! TAIL is what the tail will be when everything has arrived that has passed. So an append may be sent to stand behind an entry
//! that is in no chain yet, and may arrive before it is. Whether it ever comes into the chain depends on that entry. So:
//! - Each append that passes leaves a record, by connection and packet number: what is appended (APPEND), behind what, and
//!   which record that was (BEHIND), and what became of it (STATE).
//! - Its acknowledgement is passed on when that of the entry in front of it has been. Before that it is dropped: nothing can be
//!   held in a pipeline. The client asks again when its time is up, and the responder replays its answer. Acknowledgements come
//!   back in the order in which memory has executed, so this is rare: one must have been lost, or have come late.
//! - When it is, and the entry is still the tail, TAIL notes that there is nothing more to wait for: so what is appended to a tail that
//!   has stood for a while needs no record of others.
//! - An append that failed (its word was not the one expected) ends what is known of the tail, and all that stand behind it have failed,
//!   too: their clients are told that they were *refused*. Their slots need another number before they are tried again, for under this
//!   number others stand behind them.
//! - What became of it cannot be told if the record in front is gone (its connection broke, and its requests may or may not have been
//!   executed). Then the client is told so, and asks the metadata server, who waits until everything is over that was in flight.
//!
//! # What the client is told
//! An acknowledgement says what the word was. Of a steered append that would be another word than the client asked about, and it would
//! append again. So the switch writes a [`Reply`](wire::chains::Reply) there: *steered*, behind this entry (the client's notice to the metadata
//! server must name the entry in front, or the server would take back what stands between), *refused*, or *indeterminate*.
//!
//! # Numbers
//! A packet is new if its number is higher than all that its connection has sent. Only a new WRITE is learned, and only a new
//! compare-and-swap is steered. One that comes again is rewritten from its record, or passed as it is if there is none: so all
//! copies of a number are alike, whichever of them the memory executes. A record's cell is used again by the packet whose number is higher by
//! [`SteeringConfig::window`]; no requester has so many in flight, so the answer to the first has arrived by then.
//!
//! A slot is outstanding for the key that it was written for last. A client that has given up may write another key's entry to it under the same
//! number, so a WRITE whose key is not held clears the cell.
//!
//! # Reads
//! A client whose cursor is old reads an entry that is not the tail any more. OUTSTANDING still says whose entry the slot has, after it was
//! appended. So a READ of a slot may be sent to the tail of that chain ([`SteeringConfig::reads`]), if its
//! slot has the same size; what it brings passes when the tail's append is acknowledged (`reads.rs`). What is read says itself whose it is, and whether something follows it by now; so copies of
//! one may differ. The answer is one packet: of two, one could come from another entry. The client must know that it may get
//! another entry of its key (`chain::client::Client::expect_steered_reads`), and that nothing tells it any more that the one it asked for is in
//! use. A tail that the switch knows was in use not longer ago than `lifetime` and the time for which an acknowledgement may be under
//! way; slots must stay in quarantine for longer than that and a cursor's time together.
//!
//! # What is forgotten
//! Tails are soft: [`Steering::forget`] costs the appends in flight nothing and later ones a walk. Records are not: an acknowledgement without its
//! record would be taken for what the client has asked. So a connection counts only if it began in this incarnation of the switch.
//! After a restart, or a NAK that ends it, atomics of a connection pass as they are, and what they are told is "indeterminate", until it is made anew;
//! what a read brings, which may have been sent elsewhere, is refused ([`Action::Bare`]).
//! A NAK that asks for a packet again ends nothing: the packet that comes again is rewritten as it was.
//!
//! What must always hold: two copies of a packet leave alike; no append is acknowledged to its client that is not in a chain; what the
//! switch does not know passes as it is.

mod answers;
pub mod binding;
mod bound;
pub mod config;
pub mod connections;
mod control;
pub mod counters;
mod deparser;
mod expiry;
pub mod inspect;
mod keys;
mod layout;
pub mod machine;
mod parser;
mod program;
mod reads;
mod requests;
#[cfg(test)]
mod tests;
mod waiting;

pub use binding::{Bound, Sent};
pub use config::{Binding, SteeringConfig};
pub use connections::{Connection, End};
pub use counters::{Counters, Unsteered};
pub use inspect::{AppendState, AppendView};
pub use machine::{Action, Steering};
