//! The `rackmem` command as a shell sees it: what it prints where, its exit codes, and what is left behind.
//!
//! | file | scenarios |
//! | --- | --- |
//! | `ycsb` | workloads in one process; the stage map |
//! | `processes` | workloads on racks of processes |
//! | `daemons` | racks of daemons on one machine |
//! | `hosts` | racks of several hosts, each in a network namespace |
//! | `unwritable` | results that cannot be written, files that cannot be read |
//! | `product` | what the command is built from |
//! | `shell` | the command in a shell's hands |

#[allow(dead_code, reason = "tests of the library for C use all of it")]
#[path = "../../../capi/tests/all/compiler.rs"]
mod compiler;
mod daemons;
mod hosts;
mod processes;
mod product;
mod shell;
mod unwritable;
mod ycsb;

/// What is tested.
const COMMAND: &str = env!("CARGO_BIN_EXE_rackmem");
