//! FlowCC in the switch.

pub mod fan_out;
pub mod tables;
