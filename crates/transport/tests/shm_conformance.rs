//! The shared-memory transport does what every transport must do.
#![cfg(target_os = "linux")]

mod conformance;
mod shm_rack;

conformance!(shm_rack::ShmRack);
