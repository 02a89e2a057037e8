//! The `rackmem` command: real workloads on a rack, and the processes of one, from a shell.
//!
//! Nothing of the protocol is here. Each subcommand is a module that turns flags into calls of the public API,
//! and what comes back into a table for people or, with `--json`, into one document for programs. Results go to
//! standard output, everything else (progress, warnings, mistakes) to standard error.
//!
//! What is public here is for the other command, `rackmem-lab`, which measures and checks: how a command starts, ends,
//! prints and fails, how it runs processes of its own, and YCSB.
//!
//! Exit codes: 0 done; 1 the run failed; 2 the command line, or a file that it names, is wrong; 3 the run was stuck;
//! 4 a machine of the protocol panicked; 130 stopped by Ctrl-C after printing what there was. A daemon that is asked to
//! end has done what it was for: 0.

#![warn(clippy::print_stderr)]

#[macro_use]
mod say;

pub mod clock;
pub mod command;
mod daemon;
pub mod fault;
pub mod interrupt;
pub mod output;
mod pipeline;
pub mod processes;
pub mod size;
pub mod ycsb;
