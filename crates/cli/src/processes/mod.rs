//! Processes that a command starts for itself: one for each place of a rack, or one for each client of a peer.
//!
//! ```text
//!   command ── setup, orders: JSON lines ──> standard input    ┐
//!           <── events: JSON lines ───────── standard output   ├ child (`place`, a hidden subcommand)
//!                                            standard error ───┘ the command's own
//! ```
//!
//! What must always hold: when the command has ended, however that came, so have its children, and nothing of them is
//! left. A child ends itself, and removes the runtime directory, when its standard input ends, so even a command that
//! was killed leaves nothing behind. Children are in a process group of their own: Ctrl-C reaches the command, which
//! tells them.
//!
//! | file | concern |
//! | --- | --- |
//! | `workers` | the command's side: starting, telling, hearing, ending |
//! | `child` | a child's side: its setup, its orders, how it fails |
//! | `rendezvous` | how the places of a rack find each other; over which transport |
//! | `place` | a child as a place of a rack: its node, or the switch |
//! | `taken` | what children have taken of the machine |

pub mod child;
pub mod place;
pub mod rendezvous;
pub mod taken;
pub mod workers;

pub use child::{Job, Orders, Task, Teller};
pub use rendezvous::{Rendezvous, TransportKind};
pub use workers::{OnInterrupt, Under, Workers};
