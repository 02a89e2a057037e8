//! All tests of this crate, in one program.

mod backups;
mod chains;
mod copies;
mod steered;
#[path = "mutants/table.rs"]
mod table;
mod walking;
