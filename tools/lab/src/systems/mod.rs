//! The systems that are compared, on racks in virtual time.
//!
//! | file | holds |
//! | --- | --- |
//! | `subject` | what the experiments need of a system besides running |
//! | `coherence`, `gam`, `grappa` | that, for each |
//! | `measure` | which rack a point runs on |
//! | `threads` | one worker on each thread, all run to their ends |
//! | `micro`, `store`, `graph`, `transactions`, `failure`, `conflict`, `locks`, `objects`, `chains`, `programs` | one load |
//!
//! What must always hold: all systems run on the same hardware under the same load.

pub(crate) mod chains;
pub(crate) mod coherence;
mod conflict;
mod failure;
mod gam;
pub mod graph;
mod grappa;
pub(crate) mod locks;
pub mod measure;
mod micro;
pub(crate) mod objects;
pub(crate) mod programs;
mod store;
mod subject;
mod threads;
pub(crate) mod transactions;
