//! rackmem: applications, written once against the API.
//!
//! All of it but [`chains`], [`kv_locked`], [`kv_mapped`], [`named`], [`objects`] and [`snapshot`] is generic over [`rackmem::Memory`], so that the same code runs on live racks (where every
//! future is ready at its first poll) and on simulated ones (where a worker is suspended while virtual time
//! passes).
//!
//! | module | holds |
//! | --- | --- |
//! | [`chains`] | a store on memory that has nothing but a NIC: for live racks only |
//! | [`graph`] | graphs: gather, apply, scatter; PageRank and breadth-first search |
//! | [`kv`] | a distributed key-value store on coherent memory, linearizable per key, without locks |
//! | [`kv_locked`] | the same in regions that locks carry: for live racks only |
//! | [`kv_mapped`] | the same in mapped memory, of plain atomics: for racks of processes only |
//! | [`named`] | stores that other programs find by a name |
//! | [`objects`] | a read-mostly store whose buckets are read whole, one-sidedly: for live racks only |
//! | [`ordered`] | a store with an order of keys, and scans, on [`tree`] |
//! | [`snapshot`] | what a name names, saved into a file and brought back |
//! | [`tpcc`] | TPC-C on transactions |
//! | [`tree`] | an ordered index on coherent memory: a B+ tree |
//! | [`tx`] | transactions on tables in coherent memory: two-phase locking without waiting |
#![forbid(unsafe_code)]

pub mod chains;
pub mod graph;
pub mod kv;
pub mod kv_locked;
pub mod kv_mapped;
pub mod named;
pub mod objects;
pub mod ordered;
pub mod snapshot;
pub mod tpcc;
pub mod tree;
pub mod tx;
