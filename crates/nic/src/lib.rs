//! A software NIC: what stands between the network and a server's memory.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod atomics;
pub mod sabre;
