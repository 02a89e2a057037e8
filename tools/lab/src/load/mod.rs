//! What application threads do in the experiments.
//!
//! What must always hold: a load is written against [`rackmem::Memory`] alone, so it runs on simulated and live racks.

pub mod graph;
mod math;
pub mod micro;
pub mod past;
pub mod store;
pub mod zipf;
