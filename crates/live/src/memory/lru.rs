//! Which block has been used longest ago, nearly.
//!
//! A hit must not write to shared memory as a rule. So time is counted in coarse *ticks*, which pass with
//! fills, and only the first hit of a tick (of each handle) stamps its frame: in a bucket of eight frames a
//! tick of 1/64 of the cache's fills tells the frames apart well enough. Caches of up to 127 frames are exact
//! but for hits between the same two fills.
//!
//! A handle finds out that a hit is the first one at no cost of its own: the tick's low bits are part of the
//! key that its hints are found by, so hints of earlier ticks do not match and the hit takes the longer way,
//! which stamps.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use wire::BlockSize;

use super::frame_word::FrameMeta;

/// Ticks that pass while as many blocks are filled as the cache has frames.
const TICKS_PER_TURNOVER: u32 = 64;

/// Counts ticks of one cache.
pub(super) struct Clock {
    fills_per_tick: u32,
    /// The tick modulo 64, for keys: data tags have at least six bits to spare. A hint of just 64 ticks ago
    /// matches again; the stamp it fails to renew is renewed a tick later.
    phase: AtomicU64,
    fills: Fills,
}

/// The count of ticks, and of fills since the last one. They have a cache line of their own: every fill
/// writes here, and hits read the phase.
#[repr(align(64))]
struct Fills {
    tick: AtomicU32,
    since_tick: AtomicU32,
}

/// Ticks that a key tells apart.
const PHASES: u64 = BlockSize::MIN.bytes();

impl Clock {
    pub(super) fn new(frames: u32) -> Self {
        Self {
            fills_per_tick: (frames / TICKS_PER_TURNOVER).max(1),
            phase: AtomicU64::new(0),
            fills: Fills { tick: AtomicU32::new(0), since_tick: AtomicU32::new(0) },
        }
    }

    /// What hints for a block are found by during this tick.
    #[inline]
    pub(super) fn key(&self, tag: u64) -> u64 {
        tag | self.phase.load(Relaxed)
    }

    /// Notes a use of the frame.
    pub(super) fn touch(&self, meta: &FrameMeta) {
        let tick = self.fills.tick.load(Relaxed);
        if meta.stamp.load(Relaxed) != tick {
            meta.stamp.store(tick, Relaxed);
        }
    }

    /// Notes a fill, by the agents, one at a time.
    pub(super) fn filled(&self) {
        let fills = self.fills.since_tick.load(Relaxed) + 1;
        if fills < self.fills_per_tick {
            self.fills.since_tick.store(fills, Relaxed);
        } else {
            let tick = self.fills.tick.load(Relaxed).wrapping_add(1);
            self.fills.since_tick.store(0, Relaxed);
            self.fills.tick.store(tick, Relaxed);
            self.phase.store(u64::from(tick) % PHASES, Relaxed);
        }
    }

    /// Ticks since the last use of the frame.
    pub(super) fn age(&self, meta: &FrameMeta) -> u32 {
        self.fills.tick.load(Relaxed).wrapping_sub(meta.stamp.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_counts_ticks_since_the_last_touch_even_across_a_wrap() {
        let clock = Clock::new(8);
        clock.fills.tick.store(u32::MAX - 1, Relaxed);
        let meta = FrameMeta::default();
        clock.touch(&meta);
        for age in 0..4 {
            assert_eq!(clock.age(&meta), age);
            clock.filled();
        }
        clock.touch(&meta);
        assert_eq!(clock.age(&meta), 0);
    }

    #[test]
    fn the_key_of_a_block_changes_with_every_tick_and_never_is_that_of_another_block() {
        let clock = Clock::new(8);
        for _ in 0..200 {
            let before = clock.key(0x40);
            clock.filled();
            assert_ne!(clock.key(0x40), before);
            assert_eq!(clock.key(0x40) & !(PHASES - 1), 0x40);
        }
    }

    #[test]
    fn a_turnover_of_a_large_cache_takes_64_ticks() {
        let clock = Clock::new(64 * 100);
        let meta = FrameMeta::default();
        clock.touch(&meta);
        (0..64 * 100).for_each(|_| clock.filled());
        assert_eq!(clock.age(&meta), 64);
    }
}
