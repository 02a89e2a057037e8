//! All tests of this crate, in one program.

mod chains_operations;
mod exact_history;
mod graph;
mod graph_simulated;
mod kv_failures;
mod kv_interleavings;
mod kv_locked;
mod kv_operations;
mod kv_simulated;
mod kv_stalled_worker;
mod kv_threads;
mod named;
mod objects_operations;
mod support;
mod tpcc;
mod tree;
mod tx;
