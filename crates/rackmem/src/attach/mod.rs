//! Applications beside a node's daemon: they use its node through a socket, and have none of their own.
//!
//! The daemon has the node's machines, its cache and its memory. An application is another process of the same user on
//! the same machine. It sends operations, some in one message if it likes, and a thread of the daemon does them on a
//! handle of its own and answers.
//!
//! ```text
//! application's thread                     daemon
//!   NodeHandle ── a batch ──────────────────> a thread of its own, with a NodeHandle
//!              <────────────────── results ──   hits and misses as for any thread of this process
//! ```
//!
//! Words and objects of this machine's nodes are used without a message, where they are (`mapped.rs`).
//!
//! Why a Unix socket, and not rings in shared memory: the kernel tells each side at once when the other one has died, however
//! it did; it names the other side's user; and there is nothing that a hostile application could write into while it is
//! looked at. While both sides are busy nobody sleeps (each yields for a while before it does), so that a round trip is
//! two copies and four system calls.
//!
//! What must always hold:
//! - An application that dies, at any moment, releases its locks, and what it was changing stays as it was, or is known to be
//!   half-written (a mapped object). The daemon goes on.
//! - A daemon that dies, or that was declared dead, is [`Error::Detached`](crate::Error::Detached), or
//!   [`Error::Fenced`](crate::Error::Fenced) where it could say so itself.
//! - Applications are not trusted to be well-formed: what is not exactly a message ends the connection and is counted. What
//!   one of them can make the daemon keep is bounded, and how long it can keep a block, or an object, from the rest of the rack is, too.
//!
//! | file | holds |
//! | --- | --- |
//! | `message.rs`, `operation.rs`, `answer.rs` | what is said |
//! | `bytes.rs`, `fuzz.rs` | as bytes and back; what a fuzzer does with it |
//! | `line.rs` | a connection: frames, and how one waits for them |
//! | `server.rs`, `serving.rs` | the daemon's side: who may come, and what is done for one connection |
//! | `client.rs`, `conversation.rs` | the application's side: a rack, and its connections |
//! | `accesses.rs`, `locks.rs`, `regions.rs`, `posted.rs` | what handles ask for |
//! | `mapped.rs` | words and objects where they are, without asking |
//! | `batch.rs` | several operations in one message |

mod accesses;
mod answer;
mod batch;
mod bytes;
mod client;
mod conversation;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod line;
mod locks;
mod mapped;
mod message;
mod operation;
mod posted;
mod regions;
mod server;
mod serving;

use std::path::PathBuf;

use wire::NodeId;

pub(crate) use answer::{error_of, error_words};
pub use batch::{Batch, Outcome};
pub(crate) use client::{Asking, Attached};
pub use error::AttachError;
pub(crate) use locks::AskedLock;
pub(crate) use posted::{AskedIndex, AskedWords};
pub(crate) use regions::Closing;
pub use server::{AttachCounts, Attachments};

use crate::rack_file::RackFile;

/// Connections of applications that one daemon serves at a time: one for each thread, and one for each process that has words or
/// objects mapped.
pub const MOST_ATTACHED: usize = 64;

/// The socket at which a node's daemon serves applications.
pub fn socket_of(file: &RackFile, node: NodeId) -> PathBuf {
    file.runtime.join(format!("node-{}-apps.sock", node.0))
}

#[cfg(test)]
mod tests;
