//! What a call of the machines asks the driver to do, and the one thing that they ask it in between.
//!
//! What must always hold: effects are done in their order, before the next call, and before completions are polled.

use wire::NodeId;
use wire::roce::{Key, NakCode, Packet, QpNumber, Verdict};

use super::completion::CqNumber;
use super::region::Regions;

/// Bytes of a memory region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The region.
    pub key: Key,
    /// The first byte.
    pub address: u64,
    /// How many.
    pub len: u32,
}

impl Span {
    /// `len` bytes from `offset` on.
    pub(crate) const fn part(self, offset: u64, len: u32) -> Self {
        Self { key: self.key, address: self.address.wrapping_add(offset), len }
    }
}

/// A buffer of the driver's for an answer that must stay as it is, in case that its packets are lost. The responder of a queue
/// pair has as many as it remembers answers ([`ToReceive::remembered`](super::ToReceive)), numbered from 0 on, and uses them in
/// turn. The driver makes them as they are used; they are free when the queue pair is reset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot {
    /// Whose it is.
    pub queue_pair: QpNumber,
    /// Which of them.
    pub number: u32,
}

/// The bytes that a packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Bytes of a memory region.
    Region(Span),
    /// Bytes of an answer that is kept.
    Kept {
        /// Where it is kept.
        slot: Slot,
        /// The first of the bytes.
        offset: u32,
        /// How many.
        len: u32,
    },
}

impl Payload {
    /// How many bytes.
    pub const fn bytes(&self) -> u32 {
        match self {
            Self::Region(span) => span.len,
            Self::Kept { len, .. } => *len,
        }
    }
}

/// What the driver is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Send this packet, with these bytes as they are now.
    Send {
        /// Whose packet it is.
        from: QpNumber,
        /// The node that gets it.
        to: NodeId,
        /// The headers.
        packet: Packet,
        /// The payload.
        payload: Option<Payload>,
    },
    /// Put the payload of the packet that this call was given here: all of it, as long as the span.
    Place {
        /// Where to.
        at: Span,
    },
    /// Put a 64-bit word here, in the byte order of this machine: what an atomic found.
    Store {
        /// Where to: eight bytes.
        at: Span,
        /// The word.
        value: u64,
    },
    /// The completion queue was armed, and something is in it.
    Notify {
        /// Which.
        queue: CqNumber,
    },
    /// The queue pair has moved to the error state by itself; what was posted is flushed.
    Broken {
        /// Which.
        queue_pair: QpNumber,
    },
}

/// Why a driver does not do what a request asks. The request fails with it, and the queue pairs with the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// A request that cannot be: bytes that are no batch, a word that is not aligned, memory that holds no objects.
    Invalid,
    /// A wrong key, an address outside its region, a missing permission.
    Access,
    /// A reason of its own.
    Operation,
}

impl From<Refused> for NakCode {
    fn from(why: Refused) -> Self {
        match why {
            Refused::Invalid => Self::InvalidRequest,
            Refused::Access => Self::RemoteAccess,
            Refused::Operation => Self::RemoteOperation,
        }
    }
}

/// What is done to memory in the middle of a call: by the driver, because in live racks the processor changes the same words
/// at the same time.
///
/// Single words lie in a region, are aligned to eight bytes, and may be changed from afar: that is checked before.
pub trait Memory {
    /// What the word is.
    fn read_word(&mut self, key: Key, address: u64) -> u64;
    /// Swaps the word for `swap` if it is `compare`, atomically; returns what it was.
    fn compare_swap(&mut self, key: Key, address: u64, compare: u64, swap: u64) -> u64;
    /// Adds to the word, wrapping, atomically; returns what it was.
    fn fetch_add(&mut self, key: Key, address: u64, add: u64) -> u64;

    /// Executes the batch of remote atomics that is the payload of this call's packet, and keeps its answer in this slot, instead
    /// of what was there; returns the bytes of the answer. It looks at all entries before it executes the first:
    /// [`Regions::check_batch`] does that.
    ///
    /// # Errors
    /// Why it is refused; then no word was changed.
    fn atomics(&mut self, regions: &Regions, slot: Slot) -> Result<u32, Refused>;

    /// Takes a snapshot of an object: reads its version, copies the `len` bytes of its data into this slot, instead of what was
    /// there, and reads the version again. Version and data lie in a region that others may READ, the version is aligned to
    /// eight bytes; whether objects are there, and such ones, only the driver knows.
    ///
    /// # Errors
    /// Why it is refused. A torn object is not: that is a verdict.
    fn snapshot(&mut self, key: Key, address: u64, len: u32, slot: Slot) -> Result<Verdict, Refused>;
}

sorted::key!(Slot: (QpNumber, u32) = |it| (it.queue_pair, it.number));
