//! What GAM's nodes say to each other.
//!
//! Every message is about one block. The home's part of a conversation is always with the node that is `tag.home()`.

use node::Access;
use sim::system::{Processor, ThreadId};
use wire::{BlockTag, NodeId};

use crate::home::Payload;

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// From where.
    pub from: NodeId,
    /// To where.
    pub to: NodeId,
    /// Who posts it.
    pub sender: Processor,
    /// Its place in the order between the two (see `channel`).
    pub number: u32,
    /// What it is about.
    pub tag: BlockTag,
    /// What it says.
    pub body: Body,
}

impl Message {
    /// Bytes of a message without the block: operation, flags, identity of the request, address, size and pointer,
    /// with the status or the identity of a third node.
    pub const HEADER: u32 = 48;
}

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// A node wants to read a block, or to write it. To the home.
    Request {
        /// Which.
        access: Access,
        /// It has a shared copy, and wants only the permission.
        has_copy: bool,
    },
    /// The node may access the block so. From the home, or with the block from its former owner.
    Grant {
        /// How.
        access: Access,
        /// The block, unless the node has it.
        data: Option<Payload>,
    },
    /// The home asks the dirty owner to send the block to the requester, or to the home itself.
    Fetch {
        /// What the requester will do with it: the owner becomes a sharer, or loses it.
        access: Access,
        /// Who.
        requester: NodeId,
    },
    /// The owner has done so. To the home, with the block if the home needs it.
    Fetched {
        /// The block.
        data: Option<Payload>,
    },
    /// The home asks a sharer to drop its copy.
    Invalidate,
    /// It is dropped. To the home.
    InvalidateAck,
    /// Notice to the home: a clean copy made room.
    EvictShared,
    /// A dirty block makes room. To the home.
    WriteBack {
        /// The block.
        data: Payload,
    },
    /// The home has taken it.
    WriteBackAck,
    /// A thread's miss, on its way to a background thread of its own node.
    Work {
        /// Whose.
        thread: ThreadId,
        /// What it needs.
        access: Access,
    },
    /// A thread wants a block's application lock. To the home.
    Lock {
        /// Whose.
        thread: ThreadId,
        /// For writing.
        write: bool,
        /// Now or not at all.
        once: bool,
    },
    /// It has it, or cannot have it now.
    LockAnswer {
        /// Who.
        thread: ThreadId,
        /// Whether.
        granted: bool,
    },
    /// A lock is released. To the home; nobody waits for it.
    Unlock {
        /// Which.
        write: bool,
    },
}

impl Body {
    /// Whether a block travels along.
    pub const fn carries_data(&self) -> bool {
        matches!(
            self,
            Self::WriteBack { .. } | Self::Grant { data: Some(_), .. } | Self::Fetched { data: Some(_) }
        )
    }
}
