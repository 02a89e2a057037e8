//! One entry of the miss-status registers: a line, and what is to be done to it.

use alloc::collections::VecDeque;

use super::Line;
use super::lines::Request;

/// Where the line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Its slot in the cache has another line.
    Blocked,
    /// The memory was asked for it.
    Fetched,
    /// It is here.
    Here(Line),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The line's number: its address over its bytes.
    pub(super) line: u64,
    pub(super) stage: Stage,
    /// The subentries.
    pub(super) pending: VecDeque<Request>,
    /// The W bit: something pending, or done, changes the line.
    pub(super) writes: bool,
    /// Requests that it has taken in.
    pub(super) taken: u32,
    /// How many entries were made before it.
    pub(super) age: u64,
}
