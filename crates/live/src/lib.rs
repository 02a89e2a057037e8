//! Real racks: the drivers that run the protocol machines on real memory, with real threads.
//!
//! | module | holds |
//! | --- | --- |
//! | [`memory`] | the bytes of a node: cache, home memory, retained answers; hits of application threads |
//! | [`inline`] | a whole rack in one process: the sender's thread runs the receiving place's machine |
//! | [`waiting`] | how a thread waits for another one, in one place |

pub mod inline;
pub mod memory;
pub mod waiting;
