//! The active transfers table: registering, folding, and the choice of what is asked of the memory next.
//!
//! What must always hold: a requester's attempts are registered in the order of their numbers; the memory is asked for one
//! transfer's blocks in their order, the one with the version first, and for all transfers' in turn.

use alloc::vec::Vec;

use wire::{AllRules, Nanos, Rule, Rules};

use super::transfer::{Head, Transfer};
use super::{Attempt, Counters, Effect, Load, Mode, Object, Refused, Row, SabreConfig};

/// The engine beside a memory.
#[derive(Clone, Debug)]
pub struct Engine<R: Rules = AllRules> {
    pub(super) config: SabreConfig,
    pub(super) rows: Vec<Option<Transfer>>,
    /// Whose turn it is to ask the memory.
    turn: usize,
    /// The last attempt of each requester that was registered, in the order of requesters.
    last: Vec<Attempt>,
    pub(super) counters: Counters,
    pub(super) rules: R,
}

impl Engine {
    /// An engine without transfers.
    ///
    /// # Panics
    /// If it would have no transfers, or stream buffers that watch nothing or more than 64 blocks.
    pub fn new(config: SabreConfig) -> Self {
        Self::with_rules(AllRules, config)
    }
}

impl<R: Rules> Engine<R> {
    /// The same, of which some rules may not hold: for checkers.
    pub fn with_rules(rules: R, config: SabreConfig) -> Self {
        assert!(config.transfers > 0, "no transfer could be active: {config:?}");
        assert!((1..=u64::BITS).contains(&config.depth), "a stream buffer has 1 to 64 bits: {config:?}");
        let rows = (0..config.transfers).map(|_| None).collect();
        let counters = Counters::default();
        Self { config, rows, turn: 0, last: Vec::new(), counters, rules }
    }

    /// What was counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Transfers that are active.
    pub fn active(&self) -> usize {
        self.rows.iter().flatten().count()
    }

    /// An attempt begins: the object that it is for. Its blocks are asked for with [`Engine::on_request`].
    ///
    /// # Errors
    /// [`Refused`]: full, malformed, or repeated.
    pub fn on_register(&mut self, now: Nanos, attempt: Attempt, object: Object) -> Result<(), Refused> {
        let is_of_memory = object.first.checked_add(object.blocks.into()).is_some();
        if object.blocks == 0 || object.header >= object.blocks || !is_of_memory {
            return self.refuse(Refused::Malformed);
        }
        let known = self.last.binary_search_by_key(&attempt.requester, |last| last.requester);
        if let Ok(at) = known
            && self.rules.holds(Rule::AttemptsDiffer)
            && self.last[at].number >= attempt.number
        {
            return self.refuse(Refused::Repeated);
        }
        let Some(row) = self.rows.iter().position(Option::is_none) else {
            self.counters.full += 1;
            return Err(Refused::Full);
        };
        match known {
            Ok(at) => self.last[at] = attempt,
            Err(at) => self.last.insert(at, attempt),
        }
        self.counters.registered += 1;
        self.rows[row] = Some(Transfer::new(attempt, object, now));
        Ok(())
    }

    /// The requester asks for so many more blocks of the object. A whole object may be asked for at once. That with the version
    /// comes first, whichever it is: what a stream buffer watches are the first blocks besides.
    ///
    /// # Errors
    /// [`Refused`]: unknown, or more blocks than there are.
    pub fn on_request(&mut self, now: Nanos, attempt: Attempt, blocks: u32) -> Result<(), Refused> {
        let is_it = |transfer: &Transfer| {
            if self.rules.holds(Rule::AttemptsDiffer) {
                transfer.attempt == attempt
            } else {
                transfer.attempt.requester == attempt.requester
            }
        };
        let is_it = |transfer: &Transfer| !transfer.is_over && is_it(transfer);
        let Some(transfer) = self.rows.iter_mut().flatten().find(|transfer| is_it(transfer)) else {
            return self.refuse(Refused::Unknown);
        };
        if blocks > transfer.object.blocks - transfer.requested {
            return self.refuse(Refused::TooMany);
        }
        transfer.requested += blocks;
        transfer.heard = now;
        Ok(())
    }

    fn refuse(&mut self, why: Refused) -> Result<(), Refused> {
        self.counters.refused += 1;
        Err(why)
    }

    /// A requester is gone, and comes back with numbers from the beginning. Its transfers end without a verdict.
    pub fn forget(&mut self, requester: u32, out: &mut Vec<Effect>) {
        self.last.retain(|last| last.requester != requester);
        for row in 0..self.rows.len() {
            if let Some(transfer) = &mut self.rows[row]
                && transfer.attempt.requester == requester
                && !transfer.is_over
            {
                transfer.is_over = true;
                self.counters.given_up += 1;
                self.free_if_over(row, out);
            }
        }
    }

    /// What is asked of the memory next, if anything: to be called again and again, at the rate at which the memory can be
    /// asked. Blocks of a torn object are answered without the memory.
    pub fn select(&mut self, out: &mut Vec<Effect>) -> Option<Load> {
        let rows = self.rows.len();
        for step in 0..rows {
            let row = (self.turn + step) % rows;
            if let Some(load) = self.unroll(row, out) {
                // The others' turn, if they have something to ask.
                self.turn = (row + 1) % rows;
                return Some(load);
            }
        }
        None
    }

    fn unroll(&mut self, index: usize, out: &mut Vec<Effect>) -> Option<Load> {
        let (mode, depth) = (self.config.mode, self.config.depth);
        let transfer = self.rows[index].as_mut().filter(|transfer| !transfer.is_over)?;
        let row = Row(index as u8);
        if transfer.torn.is_some() {
            while transfer.issued < transfer.requested {
                out.push(Effect::Empty { attempt: transfer.attempt, index: transfer.nth(transfer.issued) });
                transfer.issued += 1;
                transfer.arrived += 1;
            }
            self.end_if_over(index, out);
            return None;
        }
        if transfer.requested == 0 {
            return None;
        }
        let block = transfer.header();
        if transfer.has_all() {
            // All data are here, and the version is unverified.
            let Head::Known(version) = transfer.head else { return None };
            transfer.head = Head::Again(version);
            self.counters.read_again += 1;
            return Some(Load::Version { row, block });
        }
        if transfer.head == Head::Unread {
            match mode {
                Mode::Locked => {
                    transfer.head = Head::Asked;
                    return Some(Load::Lock { row, block });
                }
                Mode::VersionFirst => {
                    transfer.head = Head::Asked;
                    return Some(Load::Version { row, block });
                }
                Mode::Speculative => {}
            }
        }
        let waits = transfer.is_vulnerable()
            && match mode {
                Mode::VersionFirst => self.rules.holds(Rule::VersionComesFirst),
                Mode::Speculative | Mode::Locked => {
                    self.rules.holds(Rule::WindowIsBounded) && transfer.issued >= depth
                }
            };
        if waits || transfer.issued == transfer.requested {
            return None;
        }
        let index = transfer.nth(transfer.issued);
        transfer.issued += 1;
        if mode == Mode::Speculative && index == transfer.object.header {
            transfer.head = Head::Asked;
        }
        Some(Load::Block { row, block: transfer.object.first + u64::from(index), index })
    }

    /// When the engine wants to be called, for a requester that may be gone.
    pub fn deadline(&self) -> Option<Nanos> {
        self.rows.iter().flatten().filter_map(|transfer| overdue(transfer, self.config.timeout)).min()
    }

    /// Gives up transfers whose requesters are gone.
    pub fn on_deadline(&mut self, now: Nanos, out: &mut Vec<Effect>) {
        for row in 0..self.rows.len() {
            let Some(transfer) = &mut self.rows[row] else { continue };
            if overdue(transfer, self.config.timeout).is_some_and(|due| due <= now) {
                transfer.is_over = true;
                self.counters.given_up += 1;
                self.free_if_over(row, out);
            }
        }
    }

    /// Frees the row of a requester that is gone, when nothing will come for it any more.
    pub(super) fn free_if_over(&mut self, row: usize, out: &mut Vec<Effect>) {
        if self.rows[row].as_ref().is_some_and(|transfer| transfer.is_over && !transfer.waits_for_memory()) {
            let transfer = self.rows[row].take().expect("it was looked at");
            self.unlock(&transfer, out);
        }
    }

    /// Gives a reader's lock back.
    pub(super) fn unlock(&self, transfer: &Transfer, out: &mut Vec<Effect>) {
        if self.config.mode == Mode::Locked && matches!(transfer.head, Head::Known(_)) {
            out.push(Effect::Unlock { block: transfer.header() });
        }
    }
}

/// When a transfer has waited too long for its requester. Not while the memory has still to answer.
fn overdue(transfer: &Transfer, timeout: Nanos) -> Option<Nanos> {
    let waits = !transfer.waits_for_memory() && transfer.issued == transfer.requested && !transfer.has_all();
    (waits && !transfer.is_over).then_some(transfer.heard + timeout)
}
