//! All tests of this crate, in one program.

mod budget;
mod coherence_rack;
mod coherence_under_faults;
mod determinism;
mod fault;
mod hardware;
mod joint_rack;
mod locks_rack;
mod objects;
mod queue;
mod rack;
