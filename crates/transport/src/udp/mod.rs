//! Messages in authenticated UDP datagrams: between machines.
//!
//! | file | concern |
//! | --- | --- |
//! | `config` | what a transport is told, and what it refuses |
//! | `transport` | binding, and the way out |
//! | `receive` | the way in |
//! | `waiting` | sleeping until something comes |
//! | `burst` | the datagrams that a thread is filling |
//! | `coalescing`, `delayed` | messages that nobody waits for, until others go to the same peer |
//! | `envelope` | the head of a datagram |
//! | `record` | messages, and pieces of them, in a datagram |
//! | `reassembly` | messages out of their pieces |
//! | `hello` | greetings: how sessions become known |
//! | `single` | packets that travel one in a datagram, for a switch program in the kernel |
//! | `session` | a peer, its session, and the session's keys |
//! | `advertised` | addresses and names at which peers are reached |
//! | `whereabouts` | where a peer is: lookups, and what it says itself |
//! | `window` | which counters have been seen |
//! | `key`, `tag` | the rack's key, and the tags made with it |
//! | `mmsg` | several datagrams with one system call |
//! | `random` | random bytes from the system |
//! | `unused` | loopback addresses for a rack on one machine |
//! | `fuzz` | what fuzzers do with the parsers |
//!
//! A datagram is `head (32 bytes) | records | tag (16 bytes)`, all at multiples of 8. What must always hold, with a
//! key: a message that is handed over was sent by the peer that it names, in its present session, to this peer in
//! its present session, and is handed over once. Nothing is encrypted: the key keeps unknown peers from taking part, not
//! from watching.
//!
//! A peer that restarts draws another session. Its peers learn of it from a greeting that answers theirs, and then
//! refuse whatever its former incarnation had sent. Until both know each other, messages are dropped
//! ([`crate::Cause::Unreachable`]) and greetings go out; who sends has to repeat what matters, as with every loss.
//!
//! There is one session for observers. If two of them ask at the same time, each ends the other's.

mod advertised;
mod burst;
mod coalescing;
mod config;
mod delayed;
mod envelope;
#[doc(hidden)]
pub mod fuzz;
mod hello;
mod key;
mod mmsg;
mod random;
mod reassembly;
mod receive;
mod record;
mod session;
mod single;
mod tag;
mod transport;
mod unused;
mod waiting;
mod whereabouts;
mod window;

pub use advertised::{Advertised, HostName, Lookup};
pub(crate) use burst::Burst;
pub use config::{Error, Naming, UdpConfig};
pub use key::{Key, KeyError};
pub use single::{NodeSession, SINGLE_MAGIC, Single};
pub use transport::UdpTransport;
pub use unused::unused_addresses;
