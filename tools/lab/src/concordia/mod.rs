//! The figures of Concordia (FAST '21).
//!
//! | file | figures |
//! | --- | --- |
//! | `sharing` | 2, 9, 10: against the sharing ratio |
//! | `reads` | 11: against the read ratio |
//! | `locality` | 12: against data locality |
//! | `failure` | 13: a switch fails |
//! | `store` | 14: the key-value store |
//! | `transactions` | 15: TPC-C |
//! | `graph` | 16: PageRank |
//! | `conflict` | not in the paper: all threads on one word |
//! | `stressed` | not in the paper: too few entries, and a cold start |
//! | `budget` | not in the paper: where the time of an operation goes |
//! | `compare` | ratios between systems over many points |
//! | `method` | the constants of all of them |
//!
//! What must always hold: figures hold no constants; all share those of `method`.

pub(crate) mod budget;
mod compare;
mod conflict;
pub(crate) mod failure;
mod graph;
mod locality;
pub mod method;
mod reads;
mod sharing;
mod store;
mod stressed;
mod transactions;

use crate::figure::Figure;

/// All figures, in their order.
pub const FIGURES: [&dyn Figure; 13] = [
    &sharing::Cost,
    &sharing::Sharing,
    &sharing::HomePackets,
    &reads::Reads,
    &locality::Locality,
    &failure::SwitchFailure,
    &store::KeyValue,
    &transactions::Tpcc,
    &graph::PageRank,
    &stressed::Directory,
    &stressed::Cold,
    &conflict::OneBlock,
    &budget::Spent,
];
