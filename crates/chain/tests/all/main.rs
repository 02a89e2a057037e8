//! All tests of this crate, in one program.

mod chains;
mod copies;
mod steered;
mod walking;
