//! How large everything is.
//!
//! What must always hold: one set of sizes for all figures of a run.

use serde::{Deserialize, Serialize};

/// Sizes of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sizes {
    /// Nodes of the micro benchmark's rack.
    pub nodes: usize,
    /// Application threads on each node.
    pub threads: usize,
    /// Bytes that each thread works on. The pool that threads share is as large.
    pub places: u64,
    /// Bytes of a node's cache.
    pub cache: u64,
    /// Operations before anything is counted.
    pub warm_up: u64,
    /// Operations that are counted.
    pub operations: u64,
    /// Keys of the key-value store.
    pub keys: u64,
    /// Bytes of a node's cache under the key-value store.
    pub store_cache: u64,
}

const MIB: u64 = 1 << 20;

impl Sizes {
    /// The paper's for the micro benchmark (section 7.2): a working set of 8 GB, that is 256 MiB for each of 32 threads,
    /// and 1 GB of cache on each node. The key-value store (section 7.3) is scaled down: see `load::store`.
    pub const FULL: Self = Self {
        nodes: 8,
        threads: 4,
        places: 256 * MIB,
        cache: 1024 * MIB,
        warm_up: 300_000,
        operations: 300_000,
        keys: 1 << 18,
        store_cache: 28 * MIB,
    };

    /// The same with a third of the operations.
    pub const QUICK: Self =
        Self { warm_up: 50_000, operations: 100_000, keys: 1 << 16, store_cache: 7 * MIB, ..Self::FULL };

    /// A twentieth of the operations, and a 32nd of the working set and of the caches: for tests of claims, and for moving
    /// inputs.
    pub const SMALL: Self = Self {
        places: 8 * MIB,
        cache: 32 * MIB,
        warm_up: 15_000,
        operations: 15_000,
        keys: 1 << 14,
        store_cache: 7 * MIB / 4,
        ..Self::FULL
    };

    /// So small that all figures together take seconds without optimization: for tests. Their numbers mean nothing.
    pub const TINY: Self = Self {
        places: MIB,
        cache: 4 * MIB,
        warm_up: 500,
        operations: 1_000,
        keys: 2_048,
        store_cache: MIB,
        ..Self::FULL
    };

    /// Application threads of the whole rack.
    pub const fn all_threads(&self) -> usize {
        self.nodes * self.threads
    }
}
