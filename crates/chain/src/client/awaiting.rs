//! Where a switch has sent an append behind an entry that may not be in all copies yet.
//!
//! In the first copy it follows that entry. In the others it may follow only when the entry in front is in the chain in the last one:
//! so the client walks there, from where it knew a tail, as gets do. What must always hold: it follows in another copy only
//! what is in the chain in the last one; what is not found is settled, and not tried again under its number.

use alloc::vec::Vec;

use wire::chains::{EntryHead, Next};
use wire::{Nanos, Rule, Rules};

use super::cursors::Cursor;
use super::linking::Link;
use super::{Client, Effect, OpId, Step};
use crate::{Answer, Call, Outcome, Replica, Verb};

/// How often it looks whether the entry in front follows, until it asks the metadata server to bring it there: whoever appends that is about to
/// do so, and the server takes longer.
const LOOKS: u32 = 32;
/// How often it asks the metadata server for help, until it has that settle the matter.
const ASKS: u32 = 3;

/// An append that waits for the one in front of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Awaited {
    /// What goes on when that is in all copies.
    link: Link,
    /// How far the chain was walked in the last copy, and in which one it is read. None: from where the metadata server says.
    cursor: Option<Cursor>,
    replica: Replica,
    /// How often nothing followed there; and how often the metadata server was asked.
    looks: u32,
    asks: u32,
}

impl<R: Rules> Client<R> {
    /// A switch has sent the compare-and-swap of the first copy behind another entry than this one, which the chain has in all copies.
    pub(super) fn on_steered_copy(
        &mut self,
        now: Nanos,
        id: OpId,
        cursor: Cursor,
        link: Link,
        out: &mut Vec<Effect>,
    ) {
        if !self.rules.holds(Rule::SteeredAppendsWaitForCopies) {
            return self.link(now, id, link, out);
        }
        let awaited = Awaited { link, cursor: Some(cursor), replica: self.last(), looks: 0, asks: 0 };
        self.look(now, id, awaited, out);
    }

    /// Reads what follows; or goes on, if the walk has come to what it is to go behind.
    fn look(&mut self, now: Nanos, id: OpId, awaited: Awaited, out: &mut Vec<Effect>) {
        let Some(cursor) = awaited.cursor else { return self.ask(now, id, awaited, out) };
        if cursor.is(awaited.link.cursor) {
            return self.link(now, id, awaited.link, out);
        }
        self.step(now, id, Step::Awaiting(awaited));
        out.push(Effect::Verb(id, awaited.replica, Verb::Read(cursor.at)));
    }

    /// Asks the metadata server: where the chain is, if the cursor led nowhere; or to bring to all copies whatever follows in the first one.
    fn ask(&mut self, now: Nanos, id: OpId, awaited: Awaited, out: &mut Vec<Effect>) {
        if awaited.asks >= ASKS {
            return self.settle_at_once(now, id, out);
        }
        let key = self.op(id).key;
        let call = if awaited.cursor.is_some() { Call::Finish { key } } else { Call::Find { key } };
        let awaited = Awaited { looks: 0, asks: awaited.asks + 1, ..awaited };
        self.call(now, id, Step::Asking(awaited), call, out);
    }

    /// It has answered.
    pub(super) fn on_asked(
        &mut self,
        now: Nanos,
        id: OpId,
        awaited: Awaited,
        answer: &Answer,
        out: &mut Vec<Effect>,
    ) {
        let known = self.op(id).since;
        match *answer {
            Answer::Found(at, version) => {
                let cursor = awaited.cursor.unwrap_or(Cursor { at, version, known });
                self.look(now, id, Awaited { cursor: Some(cursor), ..awaited }, out);
            }
            Answer::Absent => self.settle_at_once(now, id, out),
            ref answer => panic!("{id:?} at {awaited:?} was answered {answer:?}"),
        }
    }

    /// What follows was read.
    pub(super) fn on_looked(
        &mut self,
        now: Nanos,
        id: OpId,
        awaited: Awaited,
        outcome: Outcome,
        out: &mut Vec<Effect>,
    ) {
        match (outcome, awaited.replica) {
            (Outcome::Read(head), _) => self.on_followed(now, id, awaited, head, out),
            (Outcome::Unknown | Outcome::Superseded, _) | (Outcome::Dead, Replica::FIRST) => {
                self.settle_at_once(now, id, out);
            }
            // Then the one in front of it is the last.
            (Outcome::Dead, Replica(dead)) => {
                self.op(id).trips -= 1;
                self.look(now, id, Awaited { replica: Replica(dead - 1), ..awaited }, out);
            }
            (outcome, _) => panic!("{id:?} at {awaited:?} ended with {outcome:?}"),
        }
    }

    fn on_followed(
        &mut self,
        now: Nanos,
        id: OpId,
        awaited: Awaited,
        head: Option<EntryHead>,
        out: &mut Vec<Effect>,
    ) {
        let Awaited { cursor, looks, .. } = awaited;
        let (op, cursor) = (*self.op(id), cursor.expect("what was read"));
        let is_it = |head: &EntryHead| head.word.entry == cursor.version && head.key == op.key;
        let counts = !self.rules.holds(Rule::CursorsExpire) || self.counts(now, &cursor);
        match head.filter(|head| counts && is_it(head)).map(|head| head.word.next) {
            Some(Next::Entry(at, version)) => {
                let next = Cursor { at, version, ..cursor };
                self.learn_from(now, op.key, cursor, next);
                self.look(now, id, Awaited { cursor: Some(next), looks: 0, ..awaited }, out);
            }
            Some(Next::Tail) => {
                // It was in use when it was read.
                let cursor = Some(Cursor { known: op.since, ..cursor });
                let awaited = Awaited { cursor, looks: looks + 1, ..awaited };
                if awaited.looks < LOOKS {
                    self.look(now, id, awaited, out);
                } else {
                    self.ask(now, id, awaited, out);
                }
            }
            // A chain that has ended, or nowhere.
            Some(Next::Closed) | None => {
                self.cursors.remove(&op.key);
                self.ask(now, id, Awaited { cursor: None, ..awaited }, out);
            }
        }
    }
}
