//! The rack, for Python: what `rackmem/__init__.py` is made of.
//!
//! Everything here is a handle of something that the rack has under a name. A handle keeps no thread busy and may be used by
//! every thread; while it waits, or copies much, other threads of the interpreter run.
//!
//! | file | holds |
//! | --- | --- |
//! | `rack.rs` | a rack that this process has joined, attached to or started |
//! | `calls.rs` | how a call reaches the rack: which thread's handle, forked children, Ctrl-C |
//! | `memory.rs` | mapped memory, which NumPy makes arrays of, and bytes by calls where nothing can be mapped |
//! | `locked.rs` | locks, and the data that come with them |
//! | `regions.rs` | locks over several regions |
//! | `words.rs` | words |
//! | `objects.rs` | objects with versions |
//! | `dict.rs` | a dictionary |
//! | `index.rs`, `errors.rs` | positions; exceptions |
//!
//! What must always hold: no call runs while this thread has the interpreter's lock and waits for another node.

mod calls;
mod dict;
mod errors;
mod index;
mod locked;
mod memory;
mod objects;
mod rack;
mod regions;
mod words;

use pyo3::prelude::*;

/// The native part of `rackmem`.
#[pymodule]
mod _rackmem {
    #[pymodule_export]
    use super::calls::forked;
    #[pymodule_export]
    use super::dict::{Dict, pack, unpack};
    #[pymodule_export]
    use super::errors::{Differs, Error, Fenced, Lost, MapError, NodeDown, NotFound};
    #[pymodule_export]
    use super::locked::{Held, Locked};
    #[pymodule_export]
    use super::memory::{Memory, Pinned};
    #[pymodule_export]
    use super::objects::Objects;
    #[pymodule_export]
    use super::rack::{Rack, attach, join, nodes_of, up};
    #[pymodule_export]
    use super::regions::{Regions, RegionsHeld};
    #[pymodule_export]
    use super::words::Words;
}
