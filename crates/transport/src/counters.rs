//! What a transport has done, and what it has dropped and why.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

wire::listed! {
    /// Why a message was dropped.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(u8)]
    pub enum Cause {
        /// Going out: the other peer cannot be reached (not there, or not known yet).
        Unreachable: "unreachable",
        /// Going out: the other peer does not take away what was sent to it, or the system has no capacity.
        Full: "full",
        /// Coming in: no message of this rack's format.
        Malformed: "malformed",
        /// Coming in: not authenticated under this rack's key.
        WrongKey: "wrong_key",
        /// Coming in: seen before, or too old to tell.
        Replayed: "replayed",
        /// Coming in: a piece of a message whose other pieces did not come.
        Incomplete: "incomplete",
        /// Coming in: of a former incarnation of the sender, or for a former incarnation of this peer.
        OtherIncarnation: "other_incarnation",
        /// A peer broke the rules of a shared ring: the ring is not used any more.
        BrokenRing: "broken_ring",
        /// Coming in: a greeting of a process with other settings, or of another version.
        Refused: "refused",
    }
}

/// Counters that threads share.
#[derive(Debug, Default)]
pub struct Counters {
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
    wake_ups: AtomicU64,
    dropped: [AtomicU64; Cause::ALL.len()],
}

/// What [`Counters`] held at one moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Messages sent.
    pub sent: u64,
    /// Their bytes, as they travelled.
    pub sent_bytes: u64,
    /// Messages received.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Peers woken by a system call.
    pub wake_ups: u64,
    /// Messages dropped, in the order of [`Cause::ALL`].
    pub dropped: [u64; Cause::ALL.len()],
}

impl Counters {
    /// Messages were sent.
    pub fn sent(&self, messages: u64, bytes: u64) {
        self.sent.fetch_add(messages, Relaxed);
        self.sent_bytes.fetch_add(bytes, Relaxed);
    }

    /// Messages were received.
    pub fn received(&self, messages: u64, bytes: u64) {
        self.received.fetch_add(messages, Relaxed);
        self.received_bytes.fetch_add(bytes, Relaxed);
    }

    /// A peer was woken.
    pub fn woke(&self) {
        self.wake_ups.fetch_add(1, Relaxed);
    }

    /// A message was dropped.
    pub fn dropped(&self, cause: Cause) {
        self.dropped[cause as usize].fetch_add(1, Relaxed);
    }

    /// What they hold now.
    pub fn counts(&self) -> Counts {
        Counts {
            sent: self.sent.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            wake_ups: self.wake_ups.load(Relaxed),
            dropped: std::array::from_fn(|cause| self.dropped[cause].load(Relaxed)),
        }
    }
}

impl Counts {
    /// Messages dropped for this cause.
    pub const fn dropped_for(&self, cause: Cause) -> u64 {
        self.dropped[cause as usize]
    }
}
