//! Putting an entry behind the tail, in all copies: what compare-and-swaps are answered.
//!
//! What must always hold: an entry is appended when it follows in every copy that lives; the first one decides, and the others repeat
//! that. What somebody else has appended is gone behind only when it is in the chain in the last copy.

use alloc::vec::Vec;

use wire::chains::{EntryVersion, Location, Next, Reply, Word};
use wire::{Nanos, Rule, Rules};

use super::cursors::{Cursor, swap};
use super::{Client, Done, Effect, LOOKS, OpId, Step};
use crate::{Appended, Call, Outcome, Replica};

/// An append, copy by copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Link {
    /// What it goes behind.
    pub(super) cursor: Cursor,
    /// When that began: until then the entry was in no chain.
    began: Nanos,
    /// Copies that are over.
    over: u8,
    /// It follows in one of them.
    is_linked: bool,
}

impl Link {
    pub(super) const fn new(cursor: Cursor, began: Nanos) -> Self {
        Self { cursor, began, over: 0, is_linked: false }
    }

    /// The same, which was sent behind that entry in the first copy: one that follows what it was to go behind.
    const fn behind(self, at: Location, version: EntryVersion) -> Self {
        let cursor = Cursor { at, version, known: self.cursor.known };
        Self { cursor, over: 1, is_linked: true, ..self }
    }
}

impl<R: Rules> Client<R> {
    /// Begins to put an operation's entry behind that one.
    pub(super) fn begin_link(&mut self, now: Nanos, id: OpId, cursor: Cursor, out: &mut Vec<Effect>) {
        self.link(now, id, Link::new(cursor, now), out);
    }

    /// In the next copy.
    pub(super) fn link(&mut self, now: Nanos, id: OpId, link: Link, out: &mut Vec<Effect>) {
        let slot = self.op(id).slot.expect("what is swapped in");
        let number =
            if self.rules.holds(Rule::CopiesHaveAnOrder) { link.over } else { self.copies - 1 - link.over };
        self.step(now, id, Step::Swapping(link));
        out.push(Effect::Verb(id, Replica(number), swap(&link.cursor, slot)));
    }

    /// A compare-and-swap is over.
    pub(super) fn on_linking(
        &mut self,
        now: Nanos,
        id: OpId,
        link: Link,
        outcome: Outcome,
        out: &mut Vec<Effect>,
    ) {
        match outcome {
            Outcome::Superseded => self.settle_at_once(now, id, out),
            // The entry in front is in the chain in all copies.
            Outcome::Unknown if link.over > 0 && self.steered_appends => self.settle_at_once(now, id, out),
            Outcome::Unknown => self.settle(now, id, Step::Settling, out),
            Outcome::Dead
                if link.over == 0
                    && self.steered_appends
                    && self.rules.holds(Rule::SteeredAppendsOfTheDeadAreSettled) =>
            {
                self.settle_at_once(now, id, out);
            }
            Outcome::Dead => {
                self.op(id).trips -= 1;
                self.linked(now, id, link, out);
            }
            Outcome::Swapped(found) => match Reply::from_bits(found) {
                Reply::Original(found) => self.on_swapped(now, id, link, found, out),
                reply => self.on_steered(now, id, link, reply, out),
            },
            outcome => panic!("{id:?} at {link:?} ended with {outcome:?}"),
        }
    }

    fn on_swapped(&mut self, now: Nanos, id: OpId, link: Link, found: u64, out: &mut Vec<Effect>) {
        let op = *self.op(id);
        let (cursor, is_first) = (link.cursor, link.over == 0);
        let found = Word::from_bits(found).filter(|word| word.entry == cursor.version);
        match found.map(|word| word.next) {
            Some(Next::Tail) => self.linked(now, id, Link { is_linked: true, ..link }, out),
            // The metadata server has walked by, and brought it here.
            Some(Next::Entry(at, version)) if self.copies > 1 && op.slot == Some((at, version)) => {
                self.linked(now, id, Link { is_linked: true, ..link }, out);
            }
            // From here on: if it follows in a copy in front of this one, that has died since, and it is in no chain.
            Some(Next::Entry(at, version))
                if self.copies == 1 || !self.rules.holds(Rule::AppendsWaitForCopies) =>
            {
                self.op(id).is_walking = self.walk.appends_read;
                self.follow(now, id, cursor, Cursor { at, version, ..cursor }, out);
            }
            // Maybe not in all copies yet.
            Some(Next::Entry(..)) => {
                let op = self.op(id);
                (op.is_walking, op.behind) = (true, Some((cursor.at, cursor.version)));
                self.read(now, id, cursor, self.last(), out);
            }
            // The tail has come and gone meanwhile, and the entry with it, or not.
            None if !is_first && self.rules.holds(Rule::LateLinksAreSettled) => {
                self.cursors.remove(&op.key);
                self.settle(now, id, Step::Renewing, out);
            }
            Some(Next::Closed) | None => self.lose(now, id, out),
        }
    }

    /// It is done with one copy.
    fn linked(&mut self, now: Nanos, id: OpId, link: Link, out: &mut Vec<Effect>) {
        let link = Link { over: link.over + 1, ..link };
        if link.over < self.copies && (self.rules.holds(Rule::AllCopiesAreLinked) || !link.is_linked) {
            return self.link(now, id, link, out);
        }
        if !link.is_linked {
            // All are dead: nobody will ever know.
            return self.settle(now, id, Step::Settling, out);
        }
        let op = *self.op(id);
        let (at, version) = op.slot.expect("what was swapped in");
        // The metadata server may have been quicker in the last copy: it may have come and gone since then.
        self.learn_from(now, op.key, link.cursor, Cursor { at, version, known: link.began });
        let (_, kind) = op.entry().expect("it appends");
        out.push(Effect::Notice(Appended { key: op.key, behind: link.cursor.at, at, version, kind }));
        self.appended(id, out);
    }

    /// Nobody knows whether its entry is in the chain, and this client appends it no more.
    fn settle(&mut self, now: Nanos, id: OpId, then: Step, out: &mut Vec<Effect>) {
        let op = self.op(id);
        let (key, (at, version)) = (op.key, op.slot.expect("what was swapped in"));
        if self.rules.holds(Rule::IndeterminateAppendsAreSettled) || then == Step::Renewing {
            self.call(now, id, then, Call::Settle { is_in_flight: true, key, at, version }, out);
        } else {
            self.end(id, Done::Failed, out);
        }
    }

    /// The same, when nothing of what was asked for it can still be executed: it was answered, or the copy is dead that it was asked of.
    pub(super) fn settle_at_once(&mut self, now: Nanos, id: OpId, out: &mut Vec<Effect>) {
        let op = self.op(id);
        let (key, (at, version)) = (op.key, op.slot.expect("what was swapped in"));
        self.call(now, id, Step::Renewing, Call::Settle { is_in_flight: false, key, at, version }, out);
    }

    /// An append has read its way to the last copy's tail.
    pub(super) fn on_tail(&mut self, now: Nanos, id: OpId, cursor: Cursor, out: &mut Vec<Effect>) {
        let op = self.op(id);
        if op.behind == Some((cursor.at, cursor.version)) {
            op.waits += 1;
            if op.waits < LOOKS {
                return self.read(now, id, cursor, self.last(), out);
            }
            (op.waits, op.behind, op.is_walking) = (0, None, false);
            let call = Call::Finish { key: op.key };
            return self.call(now, id, Step::Finding, call, out);
        }
        (op.behind, op.is_walking) = (None, false);
        self.go_on(now, id, out);
    }

    /// A switch has sent the compare-and-swap somewhere else, or does not know what became of it.
    fn on_steered(&mut self, now: Nanos, id: OpId, link: Link, reply: Reply, out: &mut Vec<Effect>) {
        let op = *self.op(id);
        let (at, version) = op.slot.expect("what was swapped in");
        match reply {
            Reply::Steered(at, version) if self.copies > 1 => {
                self.on_steered_copy(now, id, link.cursor, link.behind(at, version), out);
            }
            Reply::Steered(behind, _) => {
                self.learn(op.key, Cursor { at, version, known: link.began });
                let (_, kind) = op.entry().expect("it appends");
                out.push(Effect::Notice(Appended { key: op.key, behind, at, version, kind }));
                self.appended(id, out);
            }
            Reply::Refused if self.rules.holds(Rule::RefusedAreRenewed) => {
                self.call(now, id, Step::Renewing, Call::Renew { at, version }, out);
            }
            Reply::Refused => self.lose(now, id, out),
            Reply::Indeterminate | Reply::Original(_) => {
                self.settle(now, id, Step::Renewing, out);
            }
        }
    }
}
