//! All tests of this crate, in one program. Mutants of whole racks take minutes to compile: `--features deep` has them.

#[cfg(feature = "deep")]
mod chain_mutants;
mod exhaustive;
mod failing_runs;
mod handlers;
mod history_file;
mod joint_under_faults;
mod lock_handlers;
#[cfg(feature = "deep")]
mod lock_mutants;
mod locks_under_faults;
#[cfg(feature = "deep")]
mod mutants;
#[cfg(feature = "deep")]
mod one_sided_mutants;
mod protocol_under_faults;
mod randomized;
mod search_limits;
mod verdicts;
