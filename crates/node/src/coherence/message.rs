//! What goes in and out of a node's machines.

use wire::{GlobalAddr, Incarnation, Packet, Refusal, SlotId};

use crate::store::{DataRef, FrameId};

/// A packet and, where it carries one, the block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// The header.
    pub packet: Packet,
    /// The contents that travel with it. [`Packet::payload`] says how many bytes that is on a wire.
    pub data: Option<DataRef>,
}

impl From<Packet> for Message {
    fn from(packet: Packet) -> Self {
        Self { packet, data: None }
    }
}

/// What a call of a machine asks its driver to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Deliver this to `packet.to`, after everything that this node sent there before.
    Send(Message),
    /// The operation in this requester slot is over: tell the thread that waits for it, and those that joined.
    Completed {
        /// The slot, free again unless the outcome is [`Outcome::Locked`].
        slot: SlotId,
        /// How it ended.
        outcome: Outcome,
    },
}

/// How an operation of an application thread ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The block is in this frame with the access asked for, pinned for the thread that started the operation.
    Pinned(FrameId),
    /// The words that a read asked for, in their block; no frame has it. The contents stay as they are until the slot is used
    /// again.
    Peeked(DataRef),
    /// The block came, but another thread was quicker: try the hit again.
    Retry,
    /// The block lock is held, until [`crate::Node::on_release`] is called for the slot.
    Locked,
    /// A new allocation; `zeroed` is false if its bytes have been used before and must be cleared.
    Allocated {
        /// Its first byte.
        addr: GlobalAddr,
        /// Whether it reads as zeroes already.
        zeroed: bool,
        /// The incarnation of its home that it dies with.
        incarnation: Incarnation,
    },
    /// The allocation is gone, and no cached copy of a block that is now empty is left.
    Freed,
    /// What this node had written is in all copies.
    Synced,
    /// It cannot be done.
    Failed(Refusal),
}

/// What became of an operation that a thread started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Started {
    /// It runs in this slot; an [`Effect::Completed`] for it follows, or has followed already.
    Slot(SlotId),
    /// Another thread's operation in this slot fetches the same block: wait for it, then try the hit again.
    Join(SlotId),
    /// The block is there by now, pinned for this thread.
    Pinned(FrameId),
    /// The block is there by now, but somebody is writing in it: try the hit again.
    Retry,
    /// Every requester slot is taken: try again when one has completed.
    Full,
}
