//! The switch of the rack: the match-action pipeline and the programs that run on it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`chip`] | the programs for coherence and for locks, as one machine |
//! | [`pipeline`] | the switch ASIC as a machine that refuses programs which the chip could not run |
//! | [`coherence`] | the coherence program: directory, locks, check and forward tables, packet idempotence |
//! | [`locks`] | the directory of the locks that carry their data |
//! | [`ebpf`] | a program of the pipeline as one for the kernel's virtual machine |
//! | [`relay`] | what the switch forwards between clients of chains and memory, and which connections it knows |
//! | [`chains`] | appends to chains, sent to the true tail in flight |
//!
//! What must always hold: a packet that the switch cannot use is dropped and counted by cause, whatever is in
//! it; a handler panics only if the switch itself is wrong.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod chains;
pub mod chip;
pub mod coherence;
pub mod ebpf;
pub mod locks;
pub mod pipeline;
pub mod relay;

pub use chip::Chip;
