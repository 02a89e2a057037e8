//! What a server of the rack runs.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod store;
pub mod window;

pub use store::{Access, DataRef, FrameId, Moment, Pinned, Reservation, Store};
pub use window::Window;
