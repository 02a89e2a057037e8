//! All tests of this crate, in one program.

mod c_programs;
mod compiler;
mod covered;
mod header;
mod packaging;
#[allow(dead_code, reason = "other tests use all of it")]
#[path = "../../../rackmem/tests/all/places/rig.rs"]
mod rig;

/// The rig of the library's own tests: a switch in this process, and transports as a rack file describes them.
mod places {
    pub(crate) use crate::rig::Places;
}
