//! rackmem: real racks, in one process for now.

pub mod memory;
