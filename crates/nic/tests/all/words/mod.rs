//! The engine of remote atomics beside a memory that answers in any order, and against a model that does one thing at a time.
//!
//! | file | what |
//! | --- | --- |
//! | `runs.rs` | random runs, and what must hold in them |
//! | `events.rs` | single events and values |
//! | `mutants.rs` | each rule left out, and caught |

mod events;
mod mutants;
mod runs;
