//! A store of versions on memory without a processor (Clover): its clients, and its metadata server.
//!
//! ```text
//!   client ── READ, WRITE, CmpSwap ──> memory: nothing but a NIC           (formats: `wire::chains`)
//!      └───── calls, now and then ───> metadata server ── READ, CmpSwap ──> the same memory
//! ```
//!
//! A key's versions are a chain: each entry has the place of the next one in its first word, and the tail has none. A client
//! that knows where the tail was reads it with one READ, and finds out by its word whether it still is the tail. It appends
//! with a WRITE to a slot of its own and a compare-and-swap on the tail's word: whoever is quicker wins, and the other has
//! learned where to try next. The metadata server hands out slots, says where a chain is to whoever does not know, and learns of
//! appends behind everybody's back; what is not the tail any more it takes back.
//!
//! | module | holds |
//! | --- | --- |
//! | [`client`] | reads, appends, and cursors: what a client knows of chains |
//! | [`metadata`] | chains as far as they are known, slots, and taking back what nobody can need |
//! | [`server`] | the metadata server and its backups: one machine, fed with the same |
//! | [`words`] | what a metadata server knows, as words |
//!
//! # Why nothing is read that was taken back
//! A slot that is not a tail any more stays in *quarantine* for a while before it is used anew. A cursor counts for less than that, from the
//! moment when its entry was known to be in use. What follows an entry in a chain enters quarantine with it or later, so a cursor may
//! follow words without counting longer. And each use of a slot has a number, which stands in the entry's word and in
//! every comparison: a compare-and-swap that comes so late that its slot has another use finds another number.
//!
//! # Where there are several copies
//! A slot is in several memories, and its location names all of its copies. An entry is written to all of them, and then appended copy by
//! copy, in their order: in the first one that lives the compare-and-swap decides what follows the tail, and in the others it only
//! repeats that. So what one copy lacks, those behind it lack, too. **Gets read the last one that lives**: what follows there follows in all
//! copies, and no death takes it away. An append goes behind an entry only if that one is in the chain there. (This is chain replication. Clover marks
//! an entry that is in all copies by a *commit bit*; here nobody sees one that is not.)
//!
//! Whoever appends is the only one who brings his link to the other copies, but for the metadata server, who does it on its walks and answers
//! nobody in the middle of that. So what became of an indeterminate entry is known when its chain has been walked, as where there is one
//! copy. When the first copy dies, what was only there is in no chain, and nobody has seen it.
//!
//! Where a switch steers, it sends the compare-and-swap of the first copy behind an entry that may not be in the others yet. So whoever
//! appends walks in the last copy until it comes to that entry, and goes on with the others then.
//!
//! Memory in the place of a dead one gets a copy of another one ([`Replica::source`]). The store is of another *generation* then. Who
//! goes by an older one takes the new memory for dead: so nobody who does is connected to any other.
//!
//! All of it is plain state machines under the call contract of the protocol core: one input at a time, the time is given, effects
//! go into the caller's buffer. What must always hold: a value that was put is read by every get that begins after the put has
//! ended, until a later put or delete; a slot has one use at a time. With several copies: as long as one of each slot lives.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod client;
pub mod metadata;
pub mod server;
pub mod words;

use alloc::vec::Vec;

use wire::chains::{Class, EntryHead, EntryKind, EntryVersion, Location, Word};

/// What is done to memory, by its NIC, without anybody there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Reads an entry: as many bytes as its slot has.
    Read(Location),
    /// Writes one, with the value of the operation.
    Write(Location, EntryHead),
    /// Swaps an entry's word, if it is what is expected.
    CompareSwap {
        /// The entry.
        at: Location,
        /// What the word must be.
        expected: Word,
        /// What it becomes.
        new: Word,
    },
}

impl Verb {
    /// True if that may become of it.
    pub(crate) const fn ends_with(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Read(_) => matches!(self, Self::Read(_)),
            Outcome::Written => matches!(self, Self::Write(..)),
            Outcome::Swapped(_) => matches!(self, Self::CompareSwap { .. }),
            Outcome::Unknown | Outcome::Superseded | Outcome::Dead => true,
        }
    }
}

/// Which copy of an entry: where entries are in several memories, each slot is in all of them, and their order is the same for all who ask.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Replica(pub u8);

impl Replica {
    /// The first one, and the only one where there are no others.
    pub const FIRST: Self = Self(0);

    /// The one behind it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Replica {
    /// The copy that memory in the place of a dead one gets: that of the nearest one before it that lives, for what it lacks those behind
    /// the dead one lack, too; or else of the first one behind. Nobody may be connected to any copy meanwhile, and whoever had been begins
    /// its operation anew.
    pub fn source(self, copies: u8, lives: impl Fn(Self) -> bool) -> Option<Self> {
        let before = (0..self.0).rev().map(Self);
        before.chain((self.0 + 1..copies).map(Self)).find(|other| lives(*other))
    }
}

/// How that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The head of what was read; none if nobody writes such a head.
    Read(Option<EntryHead>),
    /// It is in memory.
    Written,
    /// What the word was, as it stands in memory, or what a switch that steers says of it: a `wire::chains::Reply`.
    Swapped(u64),
    /// Nobody knows whether it was done. If it was not, it never will be.
    Unknown,
    /// The store is of another generation. Nobody knows whether this was done before that, but nothing of what anybody has asked in a former
    /// one is done any more.
    Superseded,
    /// The memory with that copy is dead, for good: it executes nothing more for anybody, and nobody reads it. Whether this was done there
    /// before is not known.
    Dead,
}

/// What a client asks of the metadata server. Each call is executed once, and answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Where is the chain of a key?
    Find {
        /// The key.
        key: u64,
    },
    /// The same; and where are some others' chains, whichever?
    FindSome {
        /// The key.
        key: u64,
        /// How many others, at most.
        more: u32,
    },
    /// Slots, please.
    Slots {
        /// How large.
        class: Class,
        /// How many, at most.
        count: u32,
    },
    /// This entry, which is in memory, begins a key's chain.
    Create {
        /// The key.
        key: u64,
        /// The entry.
        at: Location,
        /// Which use of its slot.
        version: EntryVersion,
    },
    /// Something follows in the first copy that is not in all of them: whoever put it there may be gone. Bring it there, please; and where
    /// is the chain?
    Finish {
        /// The key.
        key: u64,
    },
    /// This entry is in no chain, and must not come into one under its number: another number for its slot, please.
    Renew {
        /// The entry.
        at: Location,
        /// Which use of its slot.
        version: EntryVersion,
    },
    /// Is this entry part of its key's chain? Nobody appends it any more.
    Settle {
        /// What was asked for it may still be executed.
        is_in_flight: bool,
        /// The key.
        key: u64,
        /// The entry.
        at: Location,
        /// Which use of its slot.
        version: EntryVersion,
    },
}

/// What the metadata server answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// This entry was the tail not long ago.
    Found(Location, EntryVersion),
    /// The same, and what was the tail of other keys not long ago.
    FoundSome(Location, EntryVersion, Vec<(u64, Location, EntryVersion)>),
    /// The key has no chain.
    Absent,
    /// Slots, with the number of their next use; none if there is no memory.
    Slots(Vec<(Location, EntryVersion)>),
    /// The chain begins with that entry.
    Created,
    /// The entry is part of the chain.
    Linked,
    /// It is not. The slot may be used again, with this number.
    Free(EntryVersion),
}

/// What a client tells the metadata server, who may miss it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// The key.
    pub key: u64,
    /// The tail that was.
    pub behind: Location,
    /// The tail that is.
    pub at: Location,
    /// Which use of its slot.
    pub version: EntryVersion,
    /// What it is.
    pub kind: EntryKind,
}

sorted::key!(client::OpId: u64 = |it| it.0, metadata::ClientId: u64 = |it| it.0);
