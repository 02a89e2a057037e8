//! A rack in virtual time: the state machines of the protocols, unchanged, on the published hardware.
#![forbid(unsafe_code)]

pub mod chains;
pub mod coherence;
pub mod fault;
pub mod hardware;
mod home;
pub mod joint;
pub mod locks;
pub mod objects;
pub mod queue;
pub mod rack;
pub mod system;
