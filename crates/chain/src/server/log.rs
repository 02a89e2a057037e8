//! What has happened to a metadata server, in order, as far as a backup may lack it.
//!
//! What must always hold: what a backup has, those before it have; whatever some backup lacks is still there.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use wire::{Nanos, Rule, Rules};

use super::Input;

/// Inputs that a log holds until nothing is added that may be missed.
const MOST: usize = 1 << 16;

/// Something that has happened, and when, as the primary counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Logged {
    /// When.
    pub at: Nanos,
    /// What.
    pub input: Input,
}

/// Inputs for a backup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// So many inputs all backups have.
    pub all_have: u64,
    /// The number of the first one here, from 0.
    pub from: u64,
    /// They.
    pub inputs: Vec<Logged>,
}

#[derive(Clone, Debug)]
struct Backup {
    place: usize,
    /// So many inputs it has.
    has: u64,
}

/// A log.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// The last inputs.
    inputs: VecDeque<Logged>,
    /// The number of the first of them.
    first: u64,
    /// In the order of their places.
    backups: Vec<Backup>,
}

impl Log {
    /// A log for the backups of these places.
    pub(super) fn new(places: Range<usize>) -> Self {
        let backups = places.map(|place| Backup { place, has: 0 }).collect();
        Self { inputs: VecDeque::new(), first: 0, backups }
    }

    /// So many inputs there were.
    pub(super) fn end(&self) -> u64 {
        self.first + self.inputs.len() as u64
    }

    pub(super) fn push(&mut self, input: Logged) {
        self.inputs.push_back(input);
        self.forget();
    }

    pub(super) fn is_full(&self) -> bool {
        self.inputs.len() >= MOST
    }

    /// So many inputs all backups have.
    pub(super) fn safe(&self) -> u64 {
        self.backups.iter().map(|backup| backup.has).min().unwrap_or_else(|| self.end())
    }

    pub(super) const fn has_backups(&self) -> bool {
        !self.backups.is_empty()
    }

    pub(super) fn backups(&self) -> Vec<usize> {
        self.backups.iter().map(|backup| backup.place).collect()
    }

    pub(super) fn for_backup<R: Rules>(&self, rules: R, place: usize, most: usize) -> Option<Batch> {
        let nth = self.backups.iter().position(|backup| backup.place == place)?;
        let from = self.backups[nth].has;
        let before = nth.checked_sub(1).filter(|_| rules.holds(Rule::BackupsHaveAnOrder));
        let end = before.map_or(self.end(), |before| self.backups[before].has);
        let some = (end.saturating_sub(from) as usize).min(most);
        let begin = (from - self.first) as usize;
        let inputs: Vec<Logged> = self.inputs.range(begin..begin + some).copied().collect();
        (!inputs.is_empty()).then(|| Batch { all_have: self.safe(), from, inputs })
    }

    /// A backup says so.
    pub(super) fn backup_has(&mut self, place: usize, inputs: u64) {
        let end = self.end();
        if let Some(backup) = self.backups.iter_mut().find(|backup| backup.place == place) {
            backup.has = backup.has.max(inputs.min(end));
        }
        self.forget();
    }

    pub(super) fn backup_is_gone(&mut self, place: usize) {
        self.backups.retain(|backup| backup.place != place);
        self.forget();
    }

    /// Whoever leads says so.
    pub(super) fn all_have(&mut self, inputs: u64) {
        let inputs = inputs.min(self.end());
        for backup in &mut self.backups {
            backup.has = backup.has.max(inputs);
        }
        self.forget();
    }

    fn forget(&mut self) {
        let done = (self.safe() - self.first) as usize;
        self.inputs.drain(..done);
        self.first += done as u64;
    }
}
