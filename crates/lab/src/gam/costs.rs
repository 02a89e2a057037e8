//! What takes how much processor time in GAM. One set for all figures.
//!
//! Posting a message and finding one are the hardware's, and come on top of what is here. So does the notification of
//! a thread by another one of its node. Blocks are written by the NICs straight into cache and memory.

use wire::Nanos;

use super::message::Body;

/// Processor times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// A local access: *the one declared calibration*. Figure 12 of the Concordia paper at 100 % locality is pure
    /// local access: 32 threads do 23 million in a second, 1.39 us each ("acquire/release four locks and maintain LRU
    /// lists", its section 7.2.2).
    pub access: Nanos,
    /// What a miss takes of a thread before it posts its request, on top of the access that found nothing: it makes
    /// the request, files it among the pending ones (a locked map) and takes a line for the block.
    pub miss: Nanos,
    /// A handler that decides and answers: cache or directory are looked up under the block's lock, a work request is
    /// made from the message and freed, an answer is made.
    pub handler: Nanos,
    /// A handler that only takes note of something.
    pub note: Nanos,
    /// A block makes room.
    pub eviction: Nanos,
}

impl Costs {
    /// Derived from the calibrated access, because it is the same code on the same machine: an access is four locks
    /// with what is done under them, about 350 ns for each such step. A handler takes two (the lock of the block in
    /// cache or directory, and that of the pending requests or of those to be served), and allocates a work request,
    /// fills it from the message and frees it (150 ns). That is the microsecond that an RPC handler takes which is not
    /// tuned for the NIC. A note, a miss and an eviction take one step (pending requests; LRU list).
    pub const PAPER: Self = Self {
        access: Nanos(1_391),
        miss: Nanos(350),
        handler: Nanos(850),
        note: Nanos(350),
        eviction: Nanos(350),
    };

    /// Of handling a message.
    pub const fn handling(&self, body: &Body) -> Nanos {
        match body {
            Body::Request { .. }
            | Body::Fetch { .. }
            | Body::Invalidate
            | Body::Fetched { .. }
            | Body::Grant { .. } => self.handler,
            Body::WriteBack { .. } | Body::Work { .. } | Body::Lock { .. } | Body::Unlock { .. } => {
                self.handler
            }
            Body::InvalidateAck | Body::EvictShared | Body::WriteBackAck | Body::LockAnswer { .. } => {
                self.note
            }
        }
    }
}
