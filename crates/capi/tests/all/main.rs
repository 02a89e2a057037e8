//! All tests of this crate, in one program.

mod c_programs;
mod header;
