//! What comes from the memory: blocks in any order, versions, locks, and word that a block was written.
//!
//! What must always hold: a row stays with its transfer until the memory has answered all that it was asked for it; a version
//! that comes ends the window of vulnerability or the transfer.

use alloc::vec::Vec;

use wire::{Rule, Rules};

use super::transfer::{Head, Torn};
use super::{Effect, Engine, Mode, Row, SabreConfig};

/// An odd version: a writer has the object.
const fn is_written(version: u64) -> bool {
    version % 2 == 1
}

impl<R: Rules> Engine<R> {
    /// A block has come, with what stands where a header has its version.
    ///
    /// # Panics
    /// If the memory was not asked for it.
    pub fn on_block(&mut self, row: Row, index: u32, version: u64, out: &mut Vec<Effect>) {
        let at = usize::from(row.0);
        let SabreConfig { mode, depth, .. } = self.config;
        let transfer = self.rows[at].as_mut().expect("a row is not free before the memory has answered");
        assert!(transfer.arrived < transfer.issued, "block {index} was not asked for: {transfer:?}");
        transfer.arrived += 1;
        transfer.set_arrived(index, depth);
        if !transfer.is_over {
            out.push(Effect::Reply { attempt: transfer.attempt, index });
        }
        if index == transfer.object.header && mode == Mode::Speculative {
            transfer.head = Head::Known(version);
            if self.rules.holds(Rule::OddIsWritten) && is_written(version) {
                transfer.tear(Torn::Written);
            }
        }
        self.end_if_over(at, out);
    }

    /// The version has come that [`Load::Version`](super::Load::Version) asked for.
    pub fn on_version(&mut self, row: Row, version: u64, out: &mut Vec<Effect>) {
        let at = usize::from(row.0);
        let transfer = self.rows[at].as_mut().expect("a row is not free before the memory has answered");
        match transfer.head {
            Head::Again(first) => {
                if self.rules.holds(Rule::VersionStays) && version != first {
                    transfer.tear(Torn::Changed);
                }
                transfer.head = Head::Known(first);
                transfer.unverified = false;
            }
            _ => {
                transfer.head = Head::Known(version);
                // Nothing tells of writes: the version is looked at again.
                transfer.unverified = self.rules.holds(Rule::HeaderIsReadAgain);
                if self.rules.holds(Rule::OddIsWritten) && is_written(version) {
                    transfer.tear(Torn::Written);
                }
            }
        }
        self.end_if_over(at, out);
    }

    /// The reader's lock is held, or a writer has the object.
    pub fn on_lock(&mut self, row: Row, held: bool, out: &mut Vec<Effect>) {
        let at = usize::from(row.0);
        let transfer = self.rows[at].as_mut().expect("a row is not free before the memory has answered");
        if held {
            transfer.head = Head::Known(0);
        } else {
            transfer.head = Head::Unread;
            if self.rules.holds(Rule::LockIsHeld) {
                transfer.tear(Torn::Written);
            } else {
                transfer.head = Head::Known(0);
            }
        }
        if !self.rules.holds(Rule::LockIsKept) && held {
            out.push(Effect::Unlock { block: transfer.header() });
        }
        self.end_if_over(at, out);
    }

    /// Somebody writes a block of this memory, or it leaves the processor's caches: nobody knows which. Comes after the block
    /// of which it tells.
    pub fn on_invalidation(&mut self, block: u64) {
        for transfer in self.rows.iter_mut().flatten() {
            let Some(index) = transfer.index_of(block) else { continue };
            if index == transfer.object.header {
                // Before it is read there is nothing to verify.
                transfer.unverified |= self.rules.holds(Rule::HeaderIsReadAgain)
                    && self.config.mode == Mode::Speculative
                    && matches!(transfer.head, Head::Known(_));
            }
            // A lock is taken with the header as it is then; but a copy of the block was read before.
            let is_data = index != transfer.object.header || self.config.mode == Mode::Locked;
            if self.rules.holds(Rule::WindowIsGuarded)
                && is_data
                && transfer.is_vulnerable()
                && transfer.has_arrived(index)
            {
                transfer.tear(Torn::Invalidated);
            }
        }
    }

    /// Gives the verdict if all blocks have been answered, and the version is verified.
    pub(super) fn end_if_over(&mut self, row: usize, out: &mut Vec<Effect>) {
        let Some(transfer) = &self.rows[row] else { return };
        if transfer.is_over {
            return self.free_if_over(row, out);
        }
        let is_settled = !transfer.is_vulnerable() && !transfer.unverified
            || transfer.torn.is_some() && transfer.head != Head::Asked;
        let has_all = transfer.has_all()
            || !self.rules.holds(Rule::VerdictComesLast) && transfer.arrived == transfer.issued;
        if !has_all || !is_settled || matches!(transfer.head, Head::Again(_)) {
            return;
        }
        let transfer = self.rows[row].take().expect("it is there");
        if self.rules.holds(Rule::LockIsKept) {
            self.unlock(&transfer, out);
        }
        let counters = &mut self.counters;
        match transfer.torn {
            None => counters.whole += 1,
            Some(why) => {
                counters.torn += 1;
                match why {
                    Torn::Invalidated => counters.invalidated += 1,
                    Torn::Written => counters.written += 1,
                    Torn::Changed => counters.changed += 1,
                }
            }
        }
        out.push(Effect::Verdict { attempt: transfer.attempt, whole: transfer.torn.is_none() });
    }
}
