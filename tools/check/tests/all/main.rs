//! All tests of this crate, in one program.

mod chain_mutants;
mod exhaustive;
mod failing_runs;
mod history_file;
mod joint_under_faults;
mod lock_mutants;
mod locks_under_faults;
mod mutants;
mod one_sided_mutants;
mod protocol_under_faults;
mod randomized;
mod search_limits;
mod verdicts;
