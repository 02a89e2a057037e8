//! A rack of coordinators and members on a network that loses, doubles, delays and cuts, with clocks that run at
//! different rates and processes that are stopped, killed and started. One seed is one run. After every step the
//! properties in `properties.rs` must hold.

// Each test file is a crate of its own, and none uses all of this.
#![allow(dead_code)]

mod chaos;
mod clock;
mod properties;
mod world;

pub(crate) use random::Random;
pub(crate) use world::{Faults, Rig};
