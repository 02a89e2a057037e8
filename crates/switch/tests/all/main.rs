//! All tests of this crate, in one program.

mod admission;
mod arbitrary_streams;
mod chains;
mod chains_map;
mod check_and_forward;
mod idempotence;
mod migration;
mod pipeline_runs;
mod protocol_streams;
mod refused_programs;
mod restart;
mod rig;
mod stage_map;
mod wait_queue;
