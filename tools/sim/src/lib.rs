//! A rack in virtual time: the state machines of the protocols, unchanged, on the published hardware.
#![forbid(unsafe_code)]

pub mod clover;
pub mod fault;
pub mod flowcc;
pub mod hardware;
mod home;
pub mod joint;
pub mod locks;
pub mod queue;
pub mod rack;
pub mod sonuma;
pub mod system;
