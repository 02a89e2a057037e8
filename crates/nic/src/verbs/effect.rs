//! What a call of the machines asks the driver to do, and the one thing that they ask it in between.
//!
//! What must always hold: effects are done in their order, before the next call, and before completions are polled.

use wire::NodeId;
use wire::roce::{Key, Packet, QpNumber};

use super::completion::CqNumber;

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
        payload: Option<Span>,
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

/// How words are changed: by the driver, because in live racks the processor changes the same words at the same time.
/// Called only with words that lie in a region, are aligned to eight bytes, and may be changed from afar.
pub trait Memory {
    /// What the word is.
    fn read_word(&mut self, key: Key, address: u64) -> u64;
    /// Swaps the word for `swap` if it is `compare`, atomically; returns what it was.
    fn compare_swap(&mut self, key: Key, address: u64, compare: u64, swap: u64) -> u64;
    /// Adds to the word, wrapping, atomically; returns what it was.
    fn fetch_add(&mut self, key: Key, address: u64, add: u64) -> u64;
}
