//! Which rows of the directory's program were reached, in the switch and at homes; and which kinds of packets were sent,
//! by the switch and by nodes.

use std::collections::BTreeSet;

use switch::locks::Row;
use wire::{LockKind, LockPacket};

use crate::explore::search::Reached;

/// What was reached: with true, in the switch.
#[derive(Clone, Default, Debug)]
pub struct Coverage {
    rows: BTreeSet<(bool, Row)>,
    kinds: BTreeSet<(bool, LockKind)>,
}

impl Coverage {
    /// A pass through a directory.
    pub(super) fn note_pass(&mut self, in_switch: bool, row: Row) {
        self.rows.insert((in_switch, row));
        // A home makes both passes at once.
        match row {
            Row::GoesOn => self.rows.insert((in_switch, Row::MoveKnows)),
            Row::Denied => self.rows.insert((in_switch, Row::MoveMisses)),
            _ => false,
        };
    }

    /// A packet was sent.
    pub(super) fn note_packet(&mut self, by_switch: bool, packet: &LockPacket) {
        self.kinds.insert((by_switch, packet.kind));
    }
}

impl Reached for Coverage {
    fn add(&mut self, other: &Self) {
        self.rows.extend(&other.rows);
        self.kinds.extend(&other.kinds);
    }

    fn table(&self) -> Vec<(String, bool, bool)> {
        let rows = Row::ALL.into_iter().map(|row| {
            let reached = |in_switch| self.rows.contains(&(in_switch, row));
            (format!("pass {row:?}"), reached(true), reached(false))
        });
        let kinds = LockKind::ALL.into_iter().map(|kind| {
            let sent = |by_switch| self.kinds.contains(&(by_switch, kind));
            (format!("packet {kind:?}"), sent(true), sent(false))
        });
        rows.chain(kinds).collect()
    }
}
