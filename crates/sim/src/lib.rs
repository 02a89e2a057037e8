//! A rack in virtual time: the state machines of the protocols, unchanged, on the published hardware.
#![forbid(unsafe_code)]

pub mod system;
