//! All tests of this crate, in one program.

mod alloc_home;
mod alloc_model;
mod alloc_node;
mod coherence;
mod locks;
