//! The SABRe engine beside a memory that does everything a memory may do, and with writers that take no notice of it.
//!
//! | file | what |
//! | --- | --- |
//! | `memory.rs` | objects, writers, loads that are answered in any order, invalidations |
//! | `runs.rs` | random runs, and what must hold in them |
//! | `events.rs` | single events, among them the race of the paper's Figure 2 |
//! | `mutants.rs` | each rule left out, and caught |

mod events;
mod memory;
mod mutants;
mod runs;
