//! All tests of this crate, in one program.

mod bytecode;
mod chains_mutants;
mod coherence_mutants;
mod coherence_under_faults;
mod exhaustive;
mod failing_runs;
mod history_file;
mod joint_under_faults;
mod locks_mutants;
mod locks_under_faults;
mod randomized;
mod regions_mutants;
mod search_limits;
mod verdicts;
