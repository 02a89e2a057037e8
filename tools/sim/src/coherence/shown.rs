//! What PEEKs brought: for each thread the words of its last one.
//!
//! What must always hold: what a thread looks at is what the owner answered, though the answer's place may be used again
//! before the thread runs.

use core::sync::atomic::AtomicU64;

use node::DataRef;

use super::memory::{Memory, contents_of};
use crate::home::{Contents, Home, Words, copy};
use crate::system::ThreadId;

/// The words of every thread's last PEEK, and the number of the last write in them.
pub(super) struct Shown {
    of_threads: Vec<(u32, Words)>,
}

impl Shown {
    pub(super) fn new(threads: usize) -> Self {
        Self { of_threads: (0..threads).map(|_| (0, None)).collect() }
    }

    /// An answer is for this thread.
    pub(super) fn show(
        &mut self,
        all: (&[Memory], &[Home]),
        kept: Contents,
        thread: ThreadId,
        data: DataRef,
    ) {
        let (stamp, words) = contents_of(all, kept, data);
        let place = &mut self.of_threads[usize::from(thread.0)];
        place.0 = stamp;
        copy(words, &mut place.1);
    }

    /// What this thread's PEEK brought; no words: zeroes.
    pub(super) fn to(&self, thread: ThreadId) -> (u32, Option<&[AtomicU64]>) {
        let (stamp, words) = &self.of_threads[usize::from(thread.0)];
        (*stamp, words.as_deref())
    }
}
