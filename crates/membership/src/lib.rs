#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
pub mod coordinator;
pub mod member;
pub mod message;
mod roster;
mod timing;
pub use coordinator::Coordinator;
pub use member::Member;
pub use message::Message;
pub use roster::{Life, Roster, Session};
pub use timing::Timing;
