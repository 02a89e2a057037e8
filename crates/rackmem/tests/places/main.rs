//! Racks whose places talk over the real transports: shared memory, and UDP.
#![cfg(target_os = "linux")]

mod chains;
#[path = "../chains_everywhere/mod.rs"]
mod chains_everywhere;
mod killed;
mod lock_regions;
mod one_sided;
#[path = "../one_sided_everywhere/mod.rs"]
mod one_sided_everywhere;
mod rig;
