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

use std::sync::atomic::{AtomicU32, AtomicU64};

use node::Access;

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
