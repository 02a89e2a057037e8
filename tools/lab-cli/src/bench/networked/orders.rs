//! What the command tells its children, and they tell it.

use serde::{Deserialize, Serialize};

use super::samples::Samples;
use cli::processes::place::Seat;

/// What a child is.
#[derive(Serialize, Deserialize)]
pub(crate) struct Task {
    pub(super) seat: Seat,
    pub(super) role: Role,
}

/// Of which kind its place is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bench) enum Role {
    /// It has a transport, and answers.
    Bare,
    /// It is a place of a rack; those who answer may be real-time threads, and who asks then, too.
    Rack { realtime: bool },
}

impl Role {
    /// What the three are together.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "exchange",
            Self::Rack { .. } => "rack",
        }
    }
}

/// What the command wants.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order {
    /// Of the bare requester: so many exchanges, one after the other.
    Exchange(u64),
    /// The same by two: a request and its answer.
    ExchangeOfTwo(u64),
    /// Of a node: memory for so many blocks at home on node 1, so that all pages that this takes have been touched.
    Allocate(u64),
    /// Of a node: write a word of each of these blocks.
    Write { region: u64, blocks: u64, value: u64 },
    /// Of a node: read a word of each of these blocks, which must be this.
    Read { region: u64, blocks: u64, value: u64 },
    /// Of a node: read fresh blocks whose home is node 1.
    ReadFresh(u64),
    /// The same, one after every so many nanoseconds.
    ReadPaced { reads: u64, every: u64 },
    /// Of a node: compute on every core from now on, without asking anything of the rack.
    Compute,
}

/// What has happened.
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// The place is there.
    Seated,
    /// What was ordered is done.
    Done,
    /// The memory is there.
    Region(u64),
    /// A round is over.
    Round(Samples),
}
