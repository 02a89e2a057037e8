//! The order of messages between two places: what a reliable RDMA connection gives, and what GAM builds on.
//!
//! There is one channel for each pair of nodes and background thread of the receiver, so that all messages of a
//! block between two nodes are in one. The rack may bring messages of different processors, or with and without
//! data, in another order than they were sent; early ones are held back here. What must always hold: messages leave
//! a channel in the order of their numbers, each once.

use std::collections::BTreeMap;

use super::message::Message;

/// One direction between two places.
#[derive(Debug, Default)]
pub(super) struct Channel {
    sent: u32,
    delivered: u32,
    early: BTreeMap<u32, Message>,
}

impl Channel {
    /// The number of the next message that is sent.
    pub(super) const fn number(&mut self) -> u32 {
        let number = self.sent;
        self.sent += 1;
        number
    }

    /// A message has arrived.
    pub(super) fn arrived(&mut self, message: Message) {
        let before = self.early.insert(message.number, message);
        assert!(
            before.is_none() && message.number >= self.delivered,
            "the network delivers once: {message:?}"
        );
    }

    /// The next message in order, if it is there.
    pub(super) fn next(&mut self) -> Option<Message> {
        let message = self.early.remove(&self.delivered)?;
        self.delivered += 1;
        Some(message)
    }

    /// True if nothing is held back.
    pub(super) fn is_empty(&self) -> bool {
        self.early.is_empty()
    }
}
