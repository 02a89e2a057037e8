//! Application threads that use words and objects, and what they know of regions.

use nic::regions::{Call, Shape};
use nic::words::Request;
use wire::roce::Key;
use wire::{GlobalAddr, Incarnation};

/// A region that an application knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    pub(super) addr: GlobalAddr,
    pub(super) key: Key,
    pub(super) shape: Shape,
    /// Of its home.
    pub(super) incarnation: Incarnation,
    /// Its number.
    pub(super) number: u64,
}

/// What applications do with an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// It is no region yet, and may have been one before.
    Fresh { zeroed: bool },
    /// This thread begins a region, or ends it.
    Busy(usize),
    /// It is a region.
    Usable(Known),
    /// Whoever began or ended it does not know what became of that, or is dead.
    Unknown,
}

/// An operation on a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// The region's number, and which of its words.
    pub(super) word: (u64, usize),
    /// What the word was when it was asked for.
    pub(super) since: u64,
    pub(super) request: Request,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doing {
    /// Nothing.
    Idle,
    /// Waits for the answer to a call; in `earnest`, if it does something about it.
    Asking { number: u64, call: Call, stamp: u64, earnest: bool },
    /// Was told that somebody is in the way.
    ToAsk { call: Call, stamp: u64, earnest: bool },
    /// Waits for a batch.
    Changing { changes: [Option<Change>; 2] },
    /// Waits for an object, which had this version then.
    Reading { object: (u64, usize), since: u64 },
    /// Is inside of an object at its own node, and has written so many words.
    Writing { object: (u64, usize), stamp: u64, written: usize },
    /// Is about to give memory back, of this incarnation of its home.
    ToFree { addr: GlobalAddr, incarnation: Incarnation },
    /// Waits for the allocator.
    Freeing { addr: GlobalAddr, incarnation: Incarnation },
}
