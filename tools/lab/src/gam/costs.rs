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
    /// local access: 32 threads do 23 million in a second, 1.39 us each.
    pub access: Nanos,
    /// A lock of a shared structure with what is done under it: a look-up in a map, a list that is changed. An access
    /// is four of them ("acquire/release four locks and maintain LRU lists", Concordia, section 7.2.2), so one is a
    /// quarter of an access.
    pub step: Nanos,
    /// A work request is allocated, filled from a message of some ten fields, and freed: two calls of the allocator
    /// and two new cache lines.
    pub work_request: Nanos,
}

impl Costs {
    /// What each field says.
    pub const PAPER: Self = Self { access: Nanos(1_391), step: Nanos(348), work_request: Nanos(150) };

    /// What a miss takes of a thread before it posts its request, beside the access that found nothing: a work
    /// request, filed among the pending ones, and the connection.
    pub const fn miss(&self) -> Nanos {
        self.of(2)
    }

    /// A block makes room: LRU list, cache, connection.
    pub const fn eviction(&self) -> Nanos {
        self.of(3)
    }

    /// A request begins a transition: it is filed among the pending ones.
    pub const fn transition(&self) -> Nanos {
        self.step
    }

    /// Of handling a message: the locks that the public code takes on the way that is taken most, where it counts.
    pub const fn handling(&self, body: &Body) -> Nanos {
        self.of(match body {
            // Directory and connection.
            Body::Request { .. } | Body::WriteBack { .. } => 2,
            // Pending requests (found, then erased), the application's request, cache, LRU list, and the two queues of
            // those that wait for the block.
            Body::Grant { .. } => 7,
            // Cache, LRU list, a connection to the requester and one to the home.
            Body::Fetch { .. } => 4,
            // Pending requests twice, directory, two queues.
            Body::Fetched { .. } => 5,
            // Cache, LRU list, connection.
            Body::Invalidate => 3,
            // Pending requests, the request's counter, directory.
            Body::InvalidateAck => 3,
            // Directory.
            Body::EvictShared => 1,
            // Pending requests twice, cache, two queues.
            Body::WriteBackAck => 5,
            // The queue that the work request comes through, and the look-up that is made again.
            Body::Work { .. } => 4,
            // The directory keeps the locks; and the connection.
            Body::Lock { .. } | Body::Unlock { .. } => 2,
            // Pending requests twice.
            Body::LockAnswer { .. } => 2,
        })
    }

    const fn of(&self, steps: u64) -> Nanos {
        Nanos(self.work_request.0 + steps * self.step.0)
    }
}
