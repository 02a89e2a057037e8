//! All tests of this crate, in one program.

mod claims;
mod driver;
mod explain_pictures;
mod figures;
mod gam_paths;
mod gam_random;
mod gcs;
mod grappa;
mod inputs;
mod objects;
mod page;
mod rae;
mod sabres;
mod steering;
mod systems;
mod tiny;
