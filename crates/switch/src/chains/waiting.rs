//! Compare-and-swaps for which a bound queue pair has no capacity, and which may not pass it: their packets go round in the switch.
//!
//! Otherwise each would wait until its client asks again, a millisecond on real NICs, and so would whatever stands behind it.
//!
//! What must always hold: one that is let in is still its record's, and has no number yet. One that is forgotten is asked for again by its client.

use wire::Rules;
use wire::roce::Psn;

use super::layout::state;
use super::machine::Steering;
use super::parser::Change;

/// A compare-and-swap that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// For which bound queue pair.
    pub(super) at: usize,
    pub(super) record: u32,
    pub(super) psn: Psn,
    pub(super) change: Change,
}

impl<R: Rules> Steering<R> {
    /// Its client may have asked for it before.
    pub(super) fn wait(&mut self, new: Waiting) {
        self.waiting.retain(|waiting| waiting.record != new.record);
        self.waiting.push_back(new);
    }

    /// The memory has come further: whoever has waited longest comes first.
    pub(super) fn let_in(&mut self, at: usize) {
        while self.has_capacity(at)
            && let Some(first) = self.waiting.iter().position(|waiting| waiting.at == at)
            && let Some(Waiting { record, psn, change, .. }) = self.waiting.remove(first)
        {
            let found = self.state_of(record);
            let is_pending = found & state::MASK == state::PENDING && found & state::UNBOUND != 0;
            if is_pending && self.psn_of(record) == Some(psn) {
                self.counters.let_in += 1;
                self.set_state(record, |state| state & !state::UNBOUND);
                let is_own = self.send_new(record, psn, &change);
                debug_assert!(!is_own, "there is room");
            }
        }
    }

    /// True if one more atomic may be in flight.
    fn has_capacity(&self, at: usize) -> bool {
        let binding = &self.config.binding;
        !self.waiting.is_empty()
            && self.bound[at].is_some()
            && self.in_flight(at) < u64::from(binding.window)
            && self.atomics_in_flight(at) < u64::from(binding.atomics)
    }

    /// The state of a record, with its flags.
    pub(super) fn state_of(&self, record: u32) -> u64 {
        self.program.cell(self.arrays.states, record as usize).unwrap_or(0)
    }
}
