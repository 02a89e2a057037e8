//! Real racks: the drivers that run the protocol machines on real memory, with real threads.
//!
//! | module | holds |
//! | --- | --- |
//! | [`memory`] | the bytes of a node: cache, home memory, retained answers; hits of application threads |
//! | [`actor`] | actors: machines under a lock, with an inbox, and the threads that wait for them |
//! | [`inline`] | a whole rack in one process: the sender's thread runs the receiving actor's machine |
//! | [`networked`] | a rack of processes: each actor has its own, with a transport to the others |
//! | [`chains`] | chains: clients, and the metadata server, whatever delivers their verbs |
//! | [`config`] | how a rack is set up, and what can be wrong with that |
//! | [`waiting`] | how a thread waits for another one, written once |

pub mod actor;
pub mod chains;
pub mod config;
pub mod inline;
pub mod memory;
pub mod networked;
pub mod scheduling;
pub mod waiting;

pub use config::Steering;
