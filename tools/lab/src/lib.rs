//! Baselines and experiments: one per figure of the papers, and their report.
#![forbid(unsafe_code)]

pub mod concordia;
pub mod exchange;
pub mod explain;
pub mod figure;
pub mod gam;
pub mod gcs;
pub mod grappa;
pub mod home;
pub mod layered;
pub mod load;
pub mod objects;
pub mod output;
pub mod papers;
pub mod powergraph;
pub mod rae;
pub mod sabres;
pub mod sizes;
pub mod steering;
pub mod systems;
