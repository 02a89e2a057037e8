//! All tests of this crate, in one program.

mod memory_contract;
mod memory_hits;
mod memory_stress;
mod shared_region_steps;
mod shared_regions;
mod torn_reads;
