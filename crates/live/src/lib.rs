//! Real racks: the drivers that run the protocol machines on real memory, with real threads.
//!
//! | module | holds |
//! | --- | --- |
//! | [`memory`] | the bytes of a node: cache, home memory, retained answers; hits of application threads |
//! | [`place`] | a machine under a lock with its inbox, and the threads that wait for it |
//! | [`inline`] | a whole rack in one process: the sender's thread runs the receiving place's machine |
//! | [`networked`] | a rack of processes: each place is one of its own, with a transport to the others |
//! | [`chains`] | chains: clients, and the metadata server, whatever delivers their verbs |
//! | [`config`] | how a rack is set up, and what can be wrong with that |
//! | [`waiting`] | how a thread waits for another one, in one place |

pub mod chains;
pub mod config;
pub mod inline;
pub mod memory;
pub mod networked;
pub mod place;
pub mod scheduling;
pub mod waiting;

pub use config::Steering;
