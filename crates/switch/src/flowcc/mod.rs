//! FlowCC in the switch.

pub mod fan_out;
pub mod sets;
pub mod tables;

pub use sets::set_of;
