//! All tests of this crate, in one program.

mod budget;
mod determinism;
mod fault;
mod faults_on_flowcc;
mod flowcc_rack;
mod hardware;
mod joint_rack;
mod locks_rack;
mod queue;
mod rack;
mod sonuma;
