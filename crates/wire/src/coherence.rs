//! The vocabulary of FlowCC: what can be asked, what state a block is in, why a request is refused.

use crate::rules::Rule;
use crate::rules::Rules;

crate::listed! {
    /// What a packet is about.
    ///
    /// The first ten, and the last, are *requests*. Each of the ten opens a coherence event, takes the entry's
    /// reader-writer lock where the entry is kept, and ends with an [`PacketKind::Unlock`] that is acknowledged, whether it was
    /// granted or refused. [`PacketKind::Peek`] takes no lock, changes no entry, and so has no unlock.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum PacketKind {
        /// Fetch a block to read it. The only data request under a read lock.
        ReadMiss = 1,
        /// Fetch a block to write it, and invalidate all other copies.
        WriteMiss = 2,
        /// Become the writer of a block that is already cached, and invalidate all other copies.
        WriteShared = 3,
        /// Give up a clean copy.
        EvictShared = 4,
        /// Give up the only, modified copy; it is written back to the home first.
        EvictModified = 5,
        /// Take a block's application lock for reading; the event lasts until the lock is released.
        LockRead = 6,
        /// Take a block's application lock for writing; the event lasts until the lock is released.
        LockWrite = 7,
        /// Invalidate every copy of a freed block, wherever it is.
        Purge = 8,
        /// The home hands a block's entry to the switch (section 5.2).
        AddToSwitch = 9,
        /// The home takes a block's entry back from the switch (section 5.2).
        RemoveFromSwitch = 10,

        /// An answer to a request, to its requester.
        Ack = 16,
        /// The requester ends its event: release the lock, install the new metadata.
        Unlock = 17,
        /// The unlock has been executed.
        UnlockAck = 18,
        /// A copy of a modified block, sent to its home.
        WriteBack = 19,
        /// The home has the copy; to the requester of the event.
        WriteBackAck = 20,

        /// The requester of a repeated READ-MISS is about to unlock: an agent that gets this executes no late copy
        /// of the request, and takes no late write-back of it, any more.
        Close = 21,
        /// The agent has noted it.
        CloseAck = 22,

        /// To the requester that holds an entry's lock, or waits for it: this request waits behind it, and gets
        /// the lock from it. The upper half of `arg` names the event meant.
        Follow = 29,
        /// From a requester to the one that stood behind it: the lock is yours, with this metadata, and my unlock is recorded.
        Handover = 30,
        /// The HANDOVER has come.
        HandoverAck = 31,

        /// How often blocks of the switch caused invalidations at one cache agent: `arg` has a byte for the block and
        /// for each of the seven behind it. To the shadow node.
        HotReport = 24,
        /// The switch's copy of an ADD-TO-SWITCH answer, to the shadow node.
        AddNotice = 25,
        /// The shadow node asks a home to take a cold block back from the switch.
        Demote = 26,
        /// After a restart, a node tells a home what it knows of that home's blocks (section 5.4); `event` says
        /// what this one reports.
        Report = 27,
        /// The home has taken the report.
        ReportAck = 28,

        /// An allocator asks a home for a chunk of its memory.
        ChunkRequest = 32,
        /// The home's answer to any of the three requests around it.
        HomeReply = 33,
        /// An allocator tells a home that a range of blocks is in use now, or no longer.
        Mark = 34,
        /// Give back an allocation; to the home, which passes it on to the allocator that the chunk belongs to.
        Free = 35,
        /// The allocation is gone, or why not.
        FreeReply = 36,

        /// A block of a batch, from the node that has changed it to one that keeps a copy: hold it, until the batch is committed.
        /// `arg`: its place in what goes there, in the upper half, and of how many. `copyset`: who takes part.
        Prepare = 37,
        /// So many blocks of the batch are here (`arg`).
        Prepared = 38,
        /// All who take part hold the whole batch: take it into memory.
        Commit = 39,
        /// It is there.
        Committed = 40,
        /// The node that a batch came from is gone, and nobody said that it is committed: what became of it with you? `arg` names
        /// the node in its upper 16 bits, and its incarnation in the lower 32.
        Inquire = 41,
        /// Bits 32 to 39 of `arg` say what ([`crate::BatchFate`]); the others are as they came.
        Inquired = 42,
        /// The home of a memory with copies has granted a chunk or marked blocks: whoever keeps a copy does the same.
        Replicate = 43,
        /// It has.
        Replicated = 44,
        /// A node that is to keep a copy of a memory, and does not have it whole, asks the one that serves it for what comes next
        /// after so much (`arg`). A few answers come.
        Refill = 45,
        /// A chunk (`provider`) with its owner (`copyset`; `repeated`: it died), or a live block of it with its contents; without
        /// a discipline, there is no more. `arg`: the epoch in which the chunk was last taken back.
        /// `seq`: the `arg` of a question that this would be the first answer to.
        Refilled = 46,

        /// A request: read a few words of a modified block where it is, and keep no copy. The lower half of `arg` says
        /// which: the offset in the block in its upper 20 bits, the length in its lower 12.
        Peek = 11,
    }
}

/// What became of a batch at a node that takes part in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum BatchFate {
    /// It is not whole here, and never will be.
    Discarded = 0,
    /// It is here as a whole, and nobody has said more.
    Prepared = 1,
    /// It is in memory.
    Committed = 2,
}

impl BatchFate {
    /// The fate with this wire form.
    pub const fn from_wire(bits: u64) -> Option<Self> {
        match bits {
            0 => Some(Self::Discarded),
            1 => Some(Self::Prepared),
            2 => Some(Self::Committed),
            _ => None,
        }
    }
}

impl PacketKind {
    /// The kinds by their wire form: every message is read with it.
    const BY_WIRE: [Option<Self>; 64] = {
        let mut by_wire = [None; 64];
        let mut at = 0;
        while at < Self::ALL.len() {
            by_wire[Self::ALL[at] as usize] = Some(Self::ALL[at]);
            at += 1;
        }
        by_wire
    };

    /// The kind with this wire form.
    #[inline]
    pub fn from_wire(byte: u8) -> Option<Self> {
        *Self::BY_WIRE.get(usize::from(byte))?
    }

    /// True for the kinds that open a coherence event.
    pub const fn is_request(self) -> bool {
        (self as u8) < 16
    }

    /// True for requests that take the entry's lock for reading; the others take it for writing.
    pub fn takes_read_lock<R: Rules>(self, rules: R) -> bool {
        match self {
            Self::ReadMiss | Self::LockRead => true,
            Self::EvictShared | Self::EvictModified => {
                !rules.holds(Rule::EvictionLocksForWriting) || !rules.holds(Rule::LockSerializes)
            }
            Self::AddToSwitch => false,
            _ => !rules.holds(Rule::LockSerializes),
        }
    }
}

/// The state of a block in the whole rack (Figure 6 of the paper).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum GlobalStatus {
    /// No node caches it; the home's memory is current.
    #[default]
    Unshared = 0,
    /// The nodes in the copyset cache it; the home's memory is current.
    Shared = 1,
    /// The one node in the copyset may have written it; the home's memory may be stale.
    Modified = 2,
}

impl GlobalStatus {
    /// The status with this wire form.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Unshared),
            1 => Some(Self::Shared),
            2 => Some(Self::Modified),
            _ => None,
        }
    }
}

crate::listed! {
    /// Why an event was not granted.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    #[repr(u8)]
    pub enum Refusal {
        /// A conflicting event holds the entry's lock: try again.
        Locked = 1,
        /// The check table found the request out of date (Table 2): look again at what is cached, then try again. Of chains: the store is
        /// made of other memory by now.
        Outdated = 2,
        /// Whoever got the request does not keep the entry, or not any more: try again.
        NotOwner = 3,
        /// No capacity for the entry in the switch (section 5.2, collisions).
        Collision = 4,
        /// The block belongs to no allocation, or its allocation was freed.
        Unallocated = 5,
        /// The block belongs to an allocation of another discipline.
        WrongDiscipline = 6,
        /// The home has no memory there, or none left.
        OutOfMemory = 7,
        /// The address is not the start of an allocation.
        NotAnAllocation = 8,
        /// The home rebuilds its directory after a restart, and has not heard from everybody yet: try again.
        Recovering = 9,
        /// The only current copy of the block died with its node. Freeing the block ends this.
        Lost = 10,
        /// A node that this takes is down: the block's home, or the node whose allocator has the address.
        NodeDown = 11,
        /// The lock guards another number of bytes.
        WrongLength = 12,
    }
}

impl Refusal {
    /// True if the same request may well be granted a little later.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Locked | Self::Outdated | Self::NotOwner | Self::Recovering)
    }
}

/// Granted, or why not. Carried by answers, and by the unlock that ends a refused event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Status {
    /// Granted, or simply said.
    #[default]
    Granted,
    /// Refused: the event changes no metadata.
    Refused(Refusal),
}

impl Status {
    /// Wire form.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Granted => 0,
            Self::Refused(why) => why as u8,
        }
    }

    /// The status with this wire form.
    pub fn from_wire(byte: u8) -> Option<Self> {
        if byte == 0 {
            return Some(Self::Granted);
        }
        Refusal::ALL.into_iter().find(|why| *why as u8 == byte).map(Self::Refused)
    }

    /// True unless refused.
    pub const fn is_granted(self) -> bool {
        matches!(self, Self::Granted)
    }
}
