//! All tests of this crate, in one program.

mod draining;
#[path = "../../../../fuzz/feed.rs"]
mod feed;
mod message_fuzz;
mod messages;
mod rig;
mod scenarios;
mod under_faults;
