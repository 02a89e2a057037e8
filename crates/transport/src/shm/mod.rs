//! Rings in shared memory, between processes of one machine.
