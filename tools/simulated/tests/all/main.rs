//! All tests of this crate, in one program.

mod blocks_and_locks;
mod simulated_words;
