//! All tests of this crate, in one program.

mod chains_operations;
mod deaths;
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
mod lasting_store;
#[allow(dead_code, reason = "the tests of the library use all of it")]
#[path = "../../../rackmem/tests/all/networked/lies.rs"]
mod lies;
mod named;
mod objects_operations;
mod ordered;
#[allow(dead_code, reason = "the tests of the library use all of it")]
#[path = "../../../rackmem/tests/all/networked/rig.rs"]
mod rig;
mod snapshot_deaths;
mod snapshot_files;
mod snapshot_moments;
mod snapshots;
mod support;
mod tpcc;
mod tree;
mod tx;
