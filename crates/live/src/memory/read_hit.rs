//! Read hits of application threads.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
    fence,
};

use node::{FrameId, Window};
use wire::GlobalAddr;

use super::cache::Cache;
use super::frame_word::undisturbed;
use super::hints::{Hint, Hints};
use super::pinned::Unpinned;
use super::wait::Wait;

/// Attempts of an inspection before it takes the pin, so that writers cannot starve it.
const ATTEMPTS: u32 = 32;

impl Cache {
    /// Reads the aligned word at `addr`, if its block is cached here. `None` is a miss.
    ///
    /// While a thread of this node writes in the block, this waits for it.
    #[inline]
    pub fn load_word(&self, hints: &mut Hints, addr: GlobalAddr) -> Option<u64> {
        debug_assert!(addr.bits().is_multiple_of(8), "{addr} is no aligned word");
        let tag = addr.bits() & self.tag_mask;
        let row = Hints::row(addr.bits(), self.shift);
        if let Some(hint) = hints.get(row, self.clock.key(tag))
            && let Some(value) = self.load_from(hints, hint, addr)
        {
            return Some(value);
        }
        // Spelled out: the compiler then keeps the two ways apart, and callers do not test the result of the
        // fast one again.
        let value = self.load_word_by_probe(hints, row, addr)?;
        Some(value)
    }

    /// The same, if it is where the hints say.
    #[inline(always)]
    pub fn load_word_hinted(&self, hints: &mut Hints, addr: GlobalAddr) -> Option<u64> {
        let tag = addr.bits() & self.tag_mask;
        let row = Hints::row(addr.bits(), self.shift);
        let hint = hints.get(row, self.clock.key(tag))?;
        self.load_from(hints, hint, addr)
    }

    #[cold]
    #[inline(never)]
    fn load_word_by_probe(&self, hints: &mut Hints, row: usize, addr: GlobalAddr) -> Option<u64> {
        let mut wait = Wait::default();
        loop {
            let hint = self.probe_and_hint(hints, row, addr.bits() & self.tag_mask)?;
            if let Some(value) = self.load_from(hints, hint, addr) {
                return Some(value);
            }
            wait.pause();
        }
    }

    /// Loads a word from where it was once, and then checks whether it is still there. The order matters: see
    /// the module's head.
    #[inline]
    fn load_from(&self, hints: &mut Hints, hint: Hint, addr: GlobalAddr) -> Option<u64> {
        let word = ((addr.bits() / 8) & self.word_mask) as usize;
        let value = self.data.with_margin().get(hint.base + word)?.load(SeqCst);
        let meta = self.meta.get(hint.frame.0 as usize)?;
        if undisturbed(meta.word.load(SeqCst)) != hint.generation {
            return None;
        }
        hints.count_hit();
        Some(value)
    }

    /// Reads `len` bytes inside one block in place, atomically, if the block is cached here. `None` is a
    /// miss.
    ///
    /// `look` may run several times and be shown bytes that are being changed; only the result of a run in
    /// which nothing changed is returned. If writers keep getting in between, the bytes are copied with the
    /// frame pinned; then `agent_waits` is called, before `look`, if an agent was refused for that pin: the
    /// caller owes it [`Unpinned::AgentWaits`] delivered. No pin is held while `look` runs, so it may panic.
    ///
    /// # Panics
    /// If the range leaves the block.
    #[inline]
    pub fn inspect<R>(
        &self,
        hints: &mut Hints,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
        agent_waits: impl FnOnce(FrameId),
    ) -> Option<R> {
        let tag = addr.bits() & self.tag_mask;
        let row = Hints::row(addr.bits(), self.shift);
        let hint = match hints.get(row, self.clock.key(tag)) {
            Some(hint) => hint,
            None => self.probe_and_hint(hints, row, tag)?,
        };
        if let Some(found) = self.inspect_once(hints, hint, addr, len, &mut look) {
            return Some(found);
        }
        self.inspect_disturbed(hints, row, addr, len, look, agent_waits)
    }

    #[cold]
    #[inline(never)]
    fn inspect_disturbed<R>(
        &self,
        hints: &mut Hints,
        row: usize,
        addr: GlobalAddr,
        len: usize,
        mut look: impl FnMut(&Window<'_>) -> R,
        agent_waits: impl FnOnce(FrameId),
    ) -> Option<R> {
        let tag = addr.bits() & self.tag_mask;
        let mut wait = Wait::default();
        for _ in 1..ATTEMPTS {
            let hint = self.probe_and_hint(hints, row, tag)?;
            if let Some(found) = self.inspect_once(hints, hint, addr, len, &mut look) {
                return Some(found);
            }
            wait.pause();
        }
        let pinned = self.pin_by_probe(hints, row, tag, false)?;
        let (start, skip) = (self.block.offset_in_block(addr), self.block.offset_in_block(addr) % 8);
        let words = &pinned.words()[start / 8..(start + len).div_ceil(8)];
        let copy: Vec<AtomicU64> = words.iter().map(|word| AtomicU64::new(word.load(Relaxed))).collect();
        if let Unpinned::AgentWaits(frame) = pinned.unpin(false) {
            agent_waits(frame);
        }
        Some(look(&Window::new(&copy, skip, len)))
    }

    /// One attempt of a sequence lock's reader.
    #[inline]
    fn inspect_once<R>(
        &self,
        hints: &mut Hints,
        hint: Hint,
        addr: GlobalAddr,
        len: usize,
        look: &mut impl FnMut(&Window<'_>) -> R,
    ) -> Option<R> {
        let meta = self.meta(hint.frame);
        // Saves a run that is bound to fail; and as this load cannot move before an earlier write hit of this
        // thread, neither can the run.
        if undisturbed(meta.word.load(SeqCst)) != hint.generation {
            return None;
        }
        let writes = meta.writes.load(Acquire);
        let found = look(&Window::new(self.words(hint.frame), self.block.offset_in_block(addr), len));
        fence(Acquire);
        if undisturbed(meta.word.load(Acquire)) != hint.generation || meta.writes.load(Relaxed) != writes {
            return None;
        }
        hints.count_hit();
        Some(found)
    }
}
