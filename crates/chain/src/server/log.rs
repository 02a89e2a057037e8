//! What has happened to a metadata server, in order, as far as a backup may lack it.
//!
//! What must always hold: what a backup has, those before it have; whatever some backup lacks is still there, and at a backup whatever
//! those behind it may lack.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

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

/// What a driver calls a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerId(pub u16);

#[derive(Clone, Debug)]
struct Backup {
    id: ServerId,
    /// So many inputs it has.
    has: u64,
    /// It is given what there was before: nobody waits for it yet.
    joins: bool,
}

/// A log.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// The last inputs.
    inputs: VecDeque<Logged>,
    /// The number of the first of them.
    first: u64,
    /// In the order in which they take over.
    backups: Vec<Backup>,
    /// At a backup: so many inputs all have, as far as it has heard. Nothing at a primary.
    kept: Option<u64>,
}

impl Log {
    /// The log of a primary with these backups, which know as much as it does: nothing.
    pub(super) fn of_primary(backups: &[ServerId]) -> Self {
        let mut log = Self { inputs: VecDeque::new(), first: 0, backups: Vec::new(), kept: None };
        log.lead(backups);
        log
    }

    /// That of a backup, which knows what so many inputs have come to.
    pub(super) const fn of_backup(has: u64) -> Self {
        Self { inputs: VecDeque::new(), first: has, backups: Vec::new(), kept: Some(has) }
    }

    /// A backup leads, with these ones behind it. What they have is what all have, as far as is known.
    pub(super) fn lead(&mut self, backups: &[ServerId]) {
        let has = self.first;
        self.backups = backups.iter().map(|id| Backup { id: *id, has, joins: false }).collect();
        self.kept = None;
        self.forget();
    }

    /// A backup more, which is given what there was until now.
    pub(super) fn add(&mut self, id: ServerId) {
        self.backups.retain(|backup| backup.id != id);
        self.backups.push(Backup { id, has: self.end(), joins: true });
    }

    /// It has that. True if it has all that others may act on, and no more than those before it: then it is a backup from now on.
    pub(super) fn joins<R: Rules>(&mut self, rules: R, id: ServerId) -> bool {
        let safe = self.safe();
        let Some(backup) = self.backups.iter_mut().find(|backup| backup.id == id) else { return false };
        if backup.joins && (backup.has == safe || !rules.holds(Rule::BackupsJoinInOrder)) {
            backup.joins = false;
        }
        !backup.joins
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

    /// So many inputs all backups have; at a backup, as far as it has heard.
    pub(super) fn safe(&self) -> u64 {
        if let Some(kept) = self.kept {
            return kept;
        }
        let backups = self.backups.iter().filter(|backup| !backup.joins);
        backups.map(|backup| backup.has).min().unwrap_or_else(|| self.end())
    }

    pub(super) const fn has_backups(&self) -> bool {
        !self.backups.is_empty()
    }

    pub(super) fn backups(&self) -> Vec<ServerId> {
        self.backups.iter().map(|backup| backup.id).collect()
    }

    pub(super) fn for_backup<R: Rules>(&self, rules: R, id: ServerId, most: usize) -> Option<Batch> {
        let nth = self.backups.iter().position(|backup| backup.id == id)?;
        let from = self.backups[nth].has;
        let before = nth.checked_sub(1).filter(|_| rules.holds(Rule::BackupsHaveAnOrder));
        let end = before.map_or(self.end(), |before| self.backups[before].has);
        let some = (end.saturating_sub(from) as usize).min(most);
        let begin = (from - self.first) as usize;
        let inputs: Vec<Logged> = self.inputs.range(begin..begin + some).copied().collect();
        (!inputs.is_empty()).then(|| Batch { all_have: self.safe(), from, inputs })
    }

    /// A backup says so.
    pub(super) fn backup_has(&mut self, id: ServerId, inputs: u64) {
        let end = self.end();
        if let Some(backup) = self.backups.iter_mut().find(|backup| backup.id == id) {
            backup.has = backup.has.max(inputs.min(end));
        }
        self.forget();
    }

    pub(super) fn backup_is_gone(&mut self, id: ServerId) {
        self.backups.retain(|backup| backup.id != id);
        self.forget();
    }

    /// Whoever leads says so.
    pub(super) fn all_have(&mut self, inputs: u64) {
        if let Some(kept) = self.kept {
            self.kept = Some(inputs.min(self.end()).max(kept));
            self.forget();
        }
    }

    fn forget(&mut self) {
        let lacked = self.backups.iter().map(|backup| backup.has).min().unwrap_or_else(|| self.end());
        let done = (self.kept.unwrap_or(lacked).max(self.first) - self.first) as usize;
        self.inputs.drain(..done);
        self.first += done as u64;
    }
}
