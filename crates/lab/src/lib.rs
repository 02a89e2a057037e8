//! Baselines and experiments: one per figure of the papers, and their report.
#![forbid(unsafe_code)]

pub mod concordia;
pub mod explain;
pub mod figure;
pub mod gam;
pub mod grappa;
pub mod home;
pub mod load;
pub mod output;
pub mod sizes;
pub mod systems;
