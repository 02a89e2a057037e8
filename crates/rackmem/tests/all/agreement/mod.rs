//! Processes of one rack with rack files that are not the same: for every key that a file can have, whether the rack runs
//! all the same, or both sides refuse each other and name the key with both values. And greetings that are none.
//!
//! The tests walk over the parser's own table of keys, so a key without a value to try here fails them.
#![cfg(target_os = "linux")]

mod greetings;
mod rig;
mod walk;
