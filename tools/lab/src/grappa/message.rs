//! What Grappa's cores say to each other. They are named by the application threads that they run.

use sim::system::ThreadId;
use wire::BlockTag;

/// A message, on one leg of its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The core that sends it on this leg.
    pub from: ThreadId,
    /// The core at the end of this leg.
    pub to: ThreadId,
    /// The core that it is for.
    pub destination: ThreadId,
    /// What it says.
    pub body: Body,
}

impl Message {
    /// A function to call and what it captures: address, value, the cell that the reply goes to; with MPI's envelope.
    pub const BYTES: u32 = 64;
}

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// Execute this access.
    Delegate {
        /// Whose.
        asker: ThreadId,
    },
    /// It has been executed.
    Reply,
    /// Take a block's application lock.
    Lock {
        /// For whom.
        asker: ThreadId,
        /// Which.
        tag: BlockTag,
        /// For writing.
        write: bool,
        /// Now or not at all.
        once: bool,
    },
    /// It is held, or cannot be.
    LockReply {
        /// Whether.
        granted: bool,
    },
    /// Release it. Nobody waits for that.
    Unlock {
        /// Which.
        tag: BlockTag,
        /// As it was taken.
        write: bool,
    },
}
