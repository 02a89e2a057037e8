//! All tests of this crate, in one program.

mod packet_layout;
mod roce_batch;
mod roce_frames;
