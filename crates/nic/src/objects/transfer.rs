//! One transfer: a row of the active transfers table, with its stream buffer.
//!
//! What must always hold: `arrived <= issued <= requested <= blocks`; a set bit of the stream buffer is a block that has
//! arrived.

use wire::Nanos;

use super::{Attempt, Object};

/// What is known of the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Head {
    /// Not asked for yet.
    Unread,
    /// Asked for: this is the window of vulnerability.
    Asked,
    /// Read, or with [`Mode::Locked`](super::Mode::Locked) the lock is held.
    Known(u64),
    /// It is read once more, after all data.
    Again(u64),
}

/// Why a transfer is torn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Torn {
    /// A block that was read was written in the window of vulnerability.
    Invalidated,
    /// A writer had the object.
    Written,
    /// The version was another one at the end.
    Changed,
}

#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) attempt: Attempt,
    pub(super) object: Object,
    /// Blocks that the requester has asked for (section 5.1: its requests fold into one transfer).
    pub(super) requested: u32,
    /// Blocks that the memory was asked for, or that were answered empty.
    pub(super) issued: u32,
    /// Blocks that have been answered.
    pub(super) arrived: u32,
    pub(super) head: Head,
    /// The stream buffer: which blocks have arrived, by the order in which they are asked for.
    pub(super) stream: u64,
    /// The block with the version was written, or evicted, after it was read: nobody knows which.
    pub(super) unverified: bool,
    pub(super) torn: Option<Torn>,
    /// When the requester was heard last.
    pub(super) heard: Nanos,
    /// The requester is gone: the row is free when the memory has answered what it was asked.
    pub(super) is_over: bool,
}

impl Transfer {
    pub(super) const fn new(attempt: Attempt, object: Object, now: Nanos) -> Self {
        Self {
            attempt,
            object,
            requested: 0,
            issued: 0,
            arrived: 0,
            head: Head::Unread,
            stream: 0,
            unverified: false,
            torn: None,
            heard: now,
            is_over: false,
        }
    }

    /// Blocks go out before it is known whether they are of one version.
    pub(super) const fn is_vulnerable(&self) -> bool {
        matches!(self.head, Head::Unread | Head::Asked)
    }

    /// The block with the version.
    pub(super) const fn header(&self) -> u64 {
        self.object.first + self.object.header as u64
    }

    /// Which of the object's a block of the memory is, by one subtraction.
    pub(super) fn index_of(&self, block: u64) -> Option<u32> {
        let index = block.checked_sub(self.object.first)?;
        (index < u64::from(self.object.blocks)).then_some(index as u32)
    }

    /// Which block comes after so many others: the one with the version first, then the rest in order.
    pub(super) const fn nth(&self, before: u32) -> u32 {
        match before {
            0 => self.object.header,
            _ if before <= self.object.header => before - 1,
            _ => before,
        }
    }

    /// How many blocks come before this one.
    const fn order(&self, index: u32) -> u32 {
        if index == self.object.header {
            0
        } else if index < self.object.header {
            index + 1
        } else {
            index
        }
    }

    /// The memory is asked for nothing any more, and has answered everything.
    pub(super) const fn has_all(&self) -> bool {
        self.arrived == self.object.blocks
    }

    /// The memory has still to answer something.
    pub(super) const fn waits_for_memory(&self) -> bool {
        self.arrived != self.issued || matches!(self.head, Head::Asked | Head::Again(_))
    }

    pub(super) fn tear(&mut self, why: Torn) {
        self.torn.get_or_insert(why);
    }

    pub(super) const fn has_arrived(&self, index: u32) -> bool {
        let order = self.order(index);
        order < u64::BITS && self.stream >> order & 1 == 1
    }

    /// Notes it, if a stream buffer of this depth has a bit for it.
    pub(super) const fn set_arrived(&mut self, index: u32, depth: u32) {
        let order = self.order(index);
        if order < depth {
            self.stream |= 1 << order;
        }
    }
}
