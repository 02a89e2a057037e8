//! The shared-memory transport does what every transport must do.
#![cfg(target_os = "linux")]

use crate::conformance;
use crate::shm_rack;

conformance!(shm_rack::ShmRack);
