//! What is kept about one frame, and the layout of its word.
//!
//! ```text
//! 63                                        4 3     2 1         0
//! +------------------------------------------+-------+---------+--------+
//! | generation                               | state | pending | writer |
//! +------------------------------------------+-------+---------+--------+
//! ```
//!
//! | bits | change | by |
//! | --- | --- | --- |
//! | generation | up by one whenever the frame stops being readable | agents |
//! | state | free, reserved, shared, modified | agents |
//! | pending | set: an agent found the frame pinned; cleared: it had its turn, or did not come | both |
//! | writer | set: a thread has the frame pinned | threads; agents on behalf of a thread that waited |
//!
//! What must always hold: from when a frame is published until its generation changes, it is readable and
//! holds one block; a word with the writer bit changes only by losing that bit or gaining the pending bit.
//! Generations have 60 bits and are never used twice.

use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, Release, SeqCst},
    fence,
};

use node::{Access, Pinned};

pub(super) const WRITER: u64 = 1;
pub(super) const PENDING: u64 = 1 << 1;
pub(super) const STATE: u64 = 0b11 << 2;
pub(super) const GENERATION: u64 = 1 << 4;

/// States. A readable one has the upper bit; zeroed words are free frames.
pub(super) const FREE: u64 = 0b00 << 2;
pub(super) const RESERVED: u64 = 0b01 << 2;
pub(super) const SHARED: u64 = 0b10 << 2;
pub(super) const MODIFIED: u64 = 0b11 << 2;
const READABLE: u64 = 0b10 << 2;

/// What is kept about one frame: 16 bytes, so that a hit touches one cache line of it. (The tag, which only
/// misses look at, is kept apart, eight to a cache line.)
#[derive(Default)]
#[repr(align(16))]
pub(super) struct FrameMeta {
    /// See the module's head.
    pub(super) word: AtomicU64,
    /// Counts the writes that threads have completed in the frame. An inspection that sees the same number
    /// before and after has seen no half of a write; for that a wrap at 2^32 is far enough away, as so many
    /// writes take longer than any inspection that is not going to be repeated anyway.
    pub(super) writes: AtomicU32,
    /// The cache's tick at the last hit.
    pub(super) stamp: AtomicU32,
}

/// What agents do with the word, whatever memory it is about; one at a time. Threads change it only by taking and giving back
/// the pin, and take it only of what is published. So here, words of what is free or reserved are simply stored, and words of
/// what is published change by compare-and-swap.
impl FrameMeta {
    /// What a node may do with the block, if it is published.
    pub(super) fn access(&self) -> Option<Access> {
        access(self.word.load(Relaxed))
    }

    pub(super) fn is_pinned(&self) -> bool {
        is_pinned(self.word.load(Relaxed))
    }

    /// Reserves it, if it is free.
    pub(super) fn reserve(&self) -> bool {
        let word = self.word.load(Relaxed);
        let is_free = state(word) == FREE;
        if is_free {
            self.word.store(generation(word) | RESERVED, Relaxed);
        }
        is_free
    }

    pub(super) fn publish(&self, access: Access, pin: bool) {
        self.assert_reserved();
        let generation = generation(self.word.load(Relaxed));
        self.word.store(generation | state_for(access) | if pin { WRITER } else { 0 }, Release);
    }

    pub(super) fn pin(&self) -> Result<(), Pinned> {
        self.change(|word| word | WRITER)
    }

    pub(super) fn upgrade(&self) -> Result<(), Pinned> {
        assert_eq!(self.access(), Some(Access::Shared), "only what is shared can be upgraded");
        self.change(|word| word & !STATE | MODIFIED | WRITER)
    }

    pub(super) fn downgrade(&self) -> Result<(), Pinned> {
        // Whoever has a shared frame pinned only reads: nothing to wait for.
        if self.access() == Some(Access::Shared) {
            return Ok(());
        }
        self.change(|word| word & !STATE | SHARED)
    }

    pub(super) fn withdraw(&self) -> Result<(), Pinned> {
        self.change(|word| (generation(word) + GENERATION) | RESERVED)
    }

    pub(super) fn release(&self) {
        self.assert_reserved();
        self.word.store(generation(self.word.load(Relaxed)) | FREE, Relaxed);
    }

    /// A number that changes with every write of a thread.
    pub(super) fn writes(&self) -> u64 {
        u64::from(self.writes.load(Relaxed))
    }

    /// Somebody has written, or may have. To be called by whoever has it pinned, or by an agent that has found it not pinned.
    #[inline]
    pub(super) fn count_write(&self) {
        // Released, because an inspection that starts from the new count must see all of this write.
        self.writes.store(self.writes.load(Relaxed).wrapping_add(1), Release);
    }

    /// Changes the word of what is published, unless a thread has it pinned: then the pending bit makes that
    /// thread's unpin report that an agent waits. Either way the agent has had its turn.
    fn change(&self, to: impl Fn(u64) -> u64) -> Result<(), Pinned> {
        let mut word = self.word.load(Relaxed);
        loop {
            assert!(is_readable(word), "a frame in state {:#b} is not published", state(word));
            let next = if is_pinned(word) { word | PENDING } else { to(word & !PENDING) };
            match self.word.compare_exchange_weak(word, next, SeqCst, Relaxed) {
                Ok(_) => return if is_pinned(word) { Err(Pinned) } else { Ok(()) },
                Err(now) => word = now,
            }
        }
    }

    /// Goes before every store into a reserved frame: a reader that sees the new contents sees that its
    /// generation has ended.
    pub(super) fn before_fill(&self) {
        self.assert_reserved();
        fence(Release);
    }

    /// The contents are there, and stay: it is published or reserved.
    pub(super) fn assert_holds_contents(&self) {
        assert_ne!(state(self.word.load(Relaxed)), FREE, "a free frame holds nothing");
    }

    pub(super) fn assert_reserved(&self) {
        assert_eq!(
            state(self.word.load(Relaxed)),
            RESERVED,
            "only what is reserved is filled, published, released"
        );
    }
}

/// The generation, in place.
#[inline]
pub(super) const fn generation(word: u64) -> u64 {
    word & !(GENERATION - 1)
}

/// The generation, in place, or something that is no generation while the frame is pinned: one comparison
/// tells a reader whether the frame is still what it was and nobody is writing in it. The state need not be
/// looked at, because whoever knows a generation has seen it readable; nor need the pending bit.
#[inline]
pub(super) const fn undisturbed(word: u64) -> u64 {
    word & !(STATE | PENDING)
}

#[inline]
pub(super) const fn is_readable(word: u64) -> bool {
    word & READABLE != 0
}

#[inline]
pub(super) const fn is_pinned(word: u64) -> bool {
    word & WRITER != 0
}

#[inline]
pub(super) const fn state(word: u64) -> u64 {
    word & STATE
}

pub(super) const fn state_for(access: Access) -> u64 {
    match access {
        Access::Shared => SHARED,
        Access::Modified => MODIFIED,
    }
}

/// What a node may do with the block in the frame, if it is readable.
pub(super) const fn access(word: u64) -> Option<Access> {
    match state(word) {
        SHARED => Some(Access::Shared),
        MODIFIED => Some(Access::Modified),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_costs_16_bytes_besides_its_tag() {
        assert_eq!(size_of::<FrameMeta>(), 16);
    }

    #[test]
    fn an_undisturbed_word_shows_its_generation_in_every_readable_state_and_a_pinned_one_never_does() {
        let at = 77 * GENERATION;
        for state in [SHARED, MODIFIED] {
            for pending in [0, PENDING] {
                assert_eq!(undisturbed(at | state | pending), at);
                assert_ne!(undisturbed(at | state | pending | WRITER), at);
                assert_eq!(generation(at | state | pending | WRITER), at);
            }
        }
    }

    #[test]
    fn only_shared_and_modified_frames_are_readable() {
        assert_eq!([FREE, RESERVED, SHARED, MODIFIED].map(is_readable), [false, false, true, true]);
        assert_eq!([FREE, RESERVED].map(access), [None, None]);
        assert_eq!(access(state_for(Access::Shared)), Some(Access::Shared));
        assert_eq!(access(state_for(Access::Modified)), Some(Access::Modified));
    }
}
