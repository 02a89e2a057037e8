//! Work requests, and the completions that end them.
//!
//! Between the application and the queue pair. What must always hold: every posted request ends in one completion, but
//! for one that succeeded and was posted without wanting one.

use core::fmt;

use wire::roce::{Key, QpNumber};

use super::effect::Span;

/// The application's name for a work request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WorkId(pub u64);

/// A place in the peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// The region's key there.
    pub key: Key,
    /// The first byte.
    pub address: u64,
}

/// What a work request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Local bytes go into the peer's memory.
    Write {
        /// These bytes; they must stay until the completion, for they may be sent again.
        local: Span,
        /// Where they go.
        remote: Remote,
        /// If given: the peer's next posted receive completes with it.
        immediate: Option<u32>,
    },
    /// The peer's bytes come into local memory.
    Read {
        /// Where they go.
        local: Span,
        /// The first of them.
        remote: Remote,
    },
    /// Local bytes go into the peer's next posted receive.
    Send {
        /// These bytes; they must stay until the completion.
        local: Span,
        /// For the completion there.
        immediate: Option<u32>,
    },
    /// Swaps a 64-bit word if it is what is expected.
    CompareSwap {
        /// The word.
        remote: Remote,
        /// What is expected.
        compare: u64,
        /// What comes instead.
        swap: u64,
        /// Eight bytes for what it was. The completion says it, too.
        result: Option<Span>,
    },
    /// Adds to a 64-bit word.
    FetchAdd {
        /// The word.
        remote: Remote,
        /// What to add.
        add: u64,
        /// Eight bytes for what it was. The completion says it, too.
        result: Option<Span>,
    },
    /// Operates on many words of the peer's: all of them, or the request is refused.
    Atomics {
        /// A batch of them ([`wire::roce::batch`]), of one packet at most. The bytes must stay until the completion, for they may
        /// be sent again.
        request: Span,
        /// Where the answer goes: exactly as long as it is, eight bytes for each entry that fetches.
        answer: Span,
    },
    /// An object of the peer's comes into local memory, whole, or not at all ([`Status::Torn`]). The completion says its version.
    ReadObject {
        /// Where its data go: exactly as long as they are. What is there counts only if it was whole.
        local: Span,
        /// Its version, with the data behind it.
        remote: Remote,
    },
}

impl Operation {
    /// Bytes that move.
    pub const fn len(&self) -> u32 {
        match self {
            Self::Write { local, .. }
            | Self::Read { local, .. }
            | Self::Send { local, .. }
            | Self::ReadObject { local, .. } => local.len,
            Self::Atomics { answer, .. } => answer.len,
            Self::CompareSwap { .. } | Self::FetchAdd { .. } => 8,
        }
    }

    /// True if none move.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if its answer brings something: an acknowledgement of what came later does not complete it.
    pub(crate) const fn is_answered(&self) -> bool {
        !matches!(self, Self::Write { .. } | Self::Send { .. })
    }

    /// True if it takes a posted receive of the peer's.
    pub(crate) const fn takes_receive(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Write { immediate: Some(_), .. })
    }
}

/// Work for a send queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkRequest {
    /// The application's name for it.
    pub id: WorkId,
    /// What to do.
    pub operation: Operation,
    /// A completion is wanted if it succeeds. If it fails, or is torn, there is one in any case.
    pub signaled: bool,
    /// It begins after all READs, atomics and object reads before it have been answered.
    pub fence: bool,
}

impl WorkRequest {
    /// A request with a completion and without a fence.
    pub const fn new(id: WorkId, operation: Operation) -> Self {
        Self { id, operation, signaled: true, fence: false }
    }
}

/// A buffer for a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Receive {
    /// The application's name for it.
    pub id: WorkId,
    /// Where the message goes.
    pub local: Span,
}

wire::listed! {
    /// How a work request ended, as the standard names it where it does.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Status {
        /// Done.
        Success: "IBV_WC_SUCCESS",
        /// A message was longer than the receive that it met.
        LocalLength: "IBV_WC_LOC_LEN_ERR",
        /// Local bytes that are not in a region, or may not be used so.
        LocalProtection: "IBV_WC_LOC_PROT_ERR",
        /// The queue pair was in error, or came to it, before this was known to be done.
        Flushed: "IBV_WC_WR_FLUSH_ERR",
        /// The responder found a request that cannot be.
        RemoteInvalidRequest: "IBV_WC_REM_INV_REQ_ERR",
        /// A wrong key, an address outside its region, or a missing permission.
        RemoteAccess: "IBV_WC_REM_ACCESS_ERR",
        /// The responder could not do it for a reason of its own.
        RemoteOperation: "IBV_WC_REM_OP_ERR",
        /// No answer, however often it was sent.
        RetryExceeded: "IBV_WC_RETRY_EXC_ERR",
        /// No receive was posted, however often it was sent.
        RnrRetryExceeded: "IBV_WC_RNR_RETRY_EXC_ERR",
        /// An object was being written while it was read, and nothing of it has come. The queue pair goes on; whether to try
        /// again is for the application to say. Not one of the standard's.
        Torn: "RACKMEM_WC_TORN",
        /// An object is not there any more, or has to be written anew before it can be read. The queue pair goes on. Not one of the
        /// standard's.
        Gone: "RACKMEM_WC_GONE",
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The end of a work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The request.
    pub id: WorkId,
    /// Its queue pair.
    pub queue_pair: QpNumber,
    /// How it ended.
    pub status: Status,
    /// It was a posted receive; false: work of a send queue.
    pub receive: bool,
    /// Bytes that moved. Of a WRITE with immediate data the receive says how many those were.
    pub len: u32,
    /// Immediate data that came with a message.
    pub immediate: Option<u32>,
    /// What an atomic found.
    pub original: Option<u64>,
    /// Which version of an object has come.
    pub version: Option<u64>,
}

/// Why work was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostError {
    /// There is no such queue pair.
    NoSuchQueuePair,
    /// The queue pair is not ready for it.
    NotReady,
    /// As much is posted as the queue holds: wait for a completion.
    QueueFull,
    /// Its completion might find no capacity: poll the completion queue.
    CompletionQueueFull,
    /// Longer than a message may be, or, of a batch of atomics or its answer, than a packet.
    TooLong,
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchQueuePair => "there is no such queue pair",
            Self::NotReady => "the queue pair is not in a state for this: connect it first",
            Self::QueueFull => "the queue is full: wait for a completion, or make it deeper",
            Self::CompletionQueueFull => "the completion queue has no room: poll it, or make it larger",
            Self::TooLong => "longer than a message or a packet of this queue pair may be: split it",
        })
    }
}

impl core::error::Error for PostError {}
