//! All tests of this crate, in one program.

mod atomics;
mod elf_file;
mod encodings;
mod graph_kernels;
mod litmus;
mod lock_step;
mod merging;
mod programs;
mod random_words;
mod software_path;
mod timing;
mod traps;
