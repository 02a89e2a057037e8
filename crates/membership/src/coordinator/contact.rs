//! What the coordinator knows of a process that calls itself a node.
//!
//! What must always hold: a contact never counts as heard later than it was, but for time in which the coordinator
//! itself stood still, or heard nobody.

use alloc::vec::Vec;

use wire::{Copyset, Nanos, SwitchEpoch};

use crate::message::Beat;
use crate::roster::Session;
use crate::timing::Timing;

/// A process that says that it is a node.
#[derive(Debug)]
pub(super) struct Contact {
    pub(super) session: Session,
    /// The number of the last BEAT.
    number: u64,
    /// When that came.
    pub(super) heard: Nanos,
    /// The epoch that it was in.
    pub(super) epoch: SwitchEpoch,
    /// What it has to send back, and since when it has: its BEATs are not from the past.
    pub(super) ticket: u64,
    pub(super) answered: Option<Nanos>,
    /// It had a lease in a BEAT that was not from the past.
    pub(super) leased: bool,
    pub(super) leaving: bool,
    pub(super) draining: bool,
    pub(super) sole: bool,
    /// Since when it could have begun an epoch that it has not.
    pub(super) behind: Option<Nanos>,
    pub(super) statistics: Vec<u8>,
    /// The memories with copies that it has whole, in its epoch.
    pub(super) whole: Copyset,
}

impl Contact {
    pub(super) fn new(now: Nanos, beat: &Beat, ticket: u64) -> Self {
        let mut contact = Self {
            session: beat.session,
            number: 0,
            heard: now,
            epoch: SwitchEpoch(0),
            ticket,
            answered: None,
            leased: false,
            leaving: false,
            draining: false,
            sole: beat.sole,
            behind: None,
            statistics: Vec::new(),
            whole: Copyset::EMPTY,
        };
        contact.on_beat(now, beat, SwitchEpoch(0));
        contact
    }

    /// Takes a BEAT while the switch is in this epoch. False: it is an old one.
    pub(super) fn on_beat(&mut self, now: Nanos, beat: &Beat, current: SwitchEpoch) -> bool {
        if beat.number <= self.number {
            return false;
        }
        self.number = beat.number;
        self.whole = beat.whole;
        self.heard = now;
        if beat.epoch > self.epoch {
            self.epoch = beat.epoch;
            self.behind = (beat.epoch < current).then_some(now);
        }
        if beat.ticket == self.ticket {
            self.answered.get_or_insert(now);
            self.leased |= beat.leased;
        }
        self.leaving |= beat.leaving;
        self.draining = beat.draining;
        self.statistics.clone_from(&beat.statistics);
        true
    }

    /// It has not been heard for the timeout.
    pub(super) fn is_silent(&self, now: Nanos, timing: Timing) -> bool {
        now.saturating_sub(self.heard) >= timing.timeout
    }

    /// It gets no more leases, as it does not begin the epoch that it could.
    pub(super) fn is_late(&self, now: Nanos, timing: Timing) -> bool {
        self.behind.is_some_and(|since| now.saturating_sub(since) >= timing.grace())
    }

    /// It was late for so long that its last lease has run out.
    pub(super) fn is_lost(&self, now: Nanos, timing: Timing) -> bool {
        let most = timing.grace() + timing.timeout;
        self.behind.is_some_and(|since| now.saturating_sub(since) >= most)
    }

    /// The coordinator itself stood still for so long, or was cut off: that was not this process's silence.
    pub(super) fn forgive(&mut self, gap: Nanos) {
        self.heard += gap;
        self.forgive_behind(gap);
    }

    /// The same for one that is heard now.
    pub(super) fn forgive_behind(&mut self, gap: Nanos) {
        if let Some(since) = &mut self.behind {
            *since += gap;
        }
    }
}
