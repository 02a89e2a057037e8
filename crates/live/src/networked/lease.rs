//! Until when a node may trust what it has cached.
//!
//! The coordinator declares a node dead when it was not heard of for the rack's timeout; from then on others may be
//! given what this node has. Every answer of the coordinator extends the node's lease to a moment that lies before
//! that. So a hit that is followed by a look at the lease is never stale ("strict"); without that look it is stale at
//! most until this process has heard that it was declared dead: while it is stopped nobody hits, so for as long as the
//! service thread needs to run once after it has been continued.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wire::Nanos;

/// A node's lease, shared by its threads.
#[derive(Debug, Default)]
pub struct Lease {
    until: AtomicU64,
    fenced: AtomicBool,
}

impl Lease {
    /// True while what is cached counts for certain.
    pub fn holds(&self, now: Nanos) -> bool {
        now.0 < self.until.load(Ordering::Acquire) && !self.is_fenced()
    }

    /// True once the coordinator has said that this incarnation of the node is over.
    #[inline]
    pub fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Acquire)
    }

    /// The moment to which it runs, or ran.
    pub fn until(&self) -> Nanos {
        Nanos(self.until.load(Ordering::Acquire))
    }

    pub(crate) fn extend(&self, until: Nanos) {
        self.until.fetch_max(until.0, Ordering::AcqRel);
    }

    /// Of a process that uses the node of another one: it is not known whether that one is alive, or it is again.
    pub fn doubt(&self, doubtful: bool) {
        self.fenced.store(doubtful, Ordering::Release);
    }

    pub(crate) fn fence(&self) {
        self.fenced.store(true, Ordering::Release);
    }
}
