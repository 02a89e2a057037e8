//! The program in the kernel: against the model, and what it makes of datagrams.

mod against_the_model;
mod blocks;
mod datagrams;
#[path = "../../../../fuzz/feed.rs"]
mod feed;
mod kept;
mod largest;
mod locks;
mod program_fuzz;
