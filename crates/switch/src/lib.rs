//! The match-action pipeline and the programs that run on it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod flowcc;
