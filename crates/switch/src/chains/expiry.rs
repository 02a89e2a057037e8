//! What is known of slots is forgotten when it is old: their numbers come round, and they are given to other keys. The control plane's
//! work, beside the pipeline.
//!
//! Twice in a lifetime whatever has stood there since the last time is forgotten: so it is known for half a lifetime, and for a lifetime at
//! most, and a key that is written to more often than that never loses its tail. Whose entries slots have is known for some such times. What must always hold: nothing is known for longer.

use alloc::vec::Vec;

use wire::{Nanos, Rules};

use super::layout;
use super::machine::Steering;

/// What was known when it was looked through.
#[derive(Clone, Debug, Default)]
pub(super) struct Expiry {
    /// When that is to be done next.
    pub(super) at: Nanos,
    tails: Vec<u64>,
    outstanding: Vec<u64>,
    /// How often it was done since it was done for slots.
    rounds: u32,
}

impl<R: Rules> Steering<R> {
    /// Forgets all tails, and what is outstanding. What is in flight is acknowledged as it would have been.
    pub fn forget(&mut self) {
        for index in 0..=self.sizes.indexes() {
            self.program.set_cell(self.arrays.tails, index, 0);
        }
        self.forget_outstanding();
        self.counters.forgotten += 1;
    }

    pub(super) fn forget_outstanding(&mut self) {
        for slot in 0..self.sizes.slots {
            self.program.set_cell(self.arrays.outstanding, slot, 0);
        }
    }

    /// The time has come to look through what is known.
    pub(super) fn expire(&mut self, now: Nanos) {
        let period = Nanos(self.config.lifetime.0 / 2);
        let (due, is_first) = (self.expiry.at, self.expiry.at == Nanos::ZERO);
        self.expiry.at = now + period;
        if is_first {
            return;
        }
        if now >= due + period {
            // Nobody has looked for so long that everything is old.
            self.refresh_turns();
            return self.forget();
        }
        self.refresh_turns();
        let (tails, outstanding) = (self.arrays.tails, self.arrays.outstanding);
        let mut old = core::mem::take(&mut self.expiry.tails);
        old.resize(self.sizes.indexes() + 1, 0);
        for (index, old) in old.iter_mut().enumerate() {
            // Whether its append is acknowledged by now is nothing new.
            let entry = |cell| layout::parse_tail(cell).map(|(at, version, _)| layout::entry(at, version));
            let cell = self.program.cell(tails, index).unwrap_or(0);
            if cell != 0 && entry(cell) == entry(*old) {
                self.program.set_cell(tails, index, 0);
            }
            *old = cell;
        }
        self.expiry.tails = old;
        self.counters.forgotten += 1;
        self.expiry.rounds += 1;
        if self.expiry.rounds < self.config.slot_lifetimes {
            return;
        }
        self.expiry.rounds = 0;
        let mut old = core::mem::take(&mut self.expiry.outstanding);
        old.resize(self.sizes.slots, 0);
        for (slot, old) in old.iter_mut().enumerate() {
            let cell = self.program.cell(outstanding, slot).unwrap_or(0);
            if cell != 0 && cell == *old {
                self.program.set_cell(outstanding, slot, 0);
            }
            *old = cell;
        }
        self.expiry.outstanding = old;
    }
}
