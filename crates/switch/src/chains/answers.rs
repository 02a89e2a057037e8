//! What the memory says to an atomic, and what its client is told.
//!
//! What must always hold: no append is acknowledged to its client that is not in a chain.

use wire::chains::{EntryVersion, Location, Reply, Word};
use wire::roce::{Packet, Psn};
use wire::{Rule, Rules};

use super::deparser;
use super::layout::{self, class, state, verdict};
use super::machine::{Action, Steering, mark};

/// The record of an append, as it was found.
#[derive(Clone, Copy)]
pub(super) struct Recorded {
    pub(super) at: Location,
    pub(super) version: EntryVersion,
    pub(super) psn: Psn,
    pub(super) index: u64,
    /// Where it was sent, if the switch has chosen that, and the record of that entry's append.
    pub(super) front: Option<(Location, EntryVersion, u32)>,
    /// With its flags.
    pub(super) state: u64,
    pub(super) compared: EntryVersion,
}

impl<R: Rules> Steering<R> {
    /// What stands in a record; none: nothing.
    pub(super) fn recorded(&mut self, record: u32) -> Option<Recorded> {
        self.pass(class::ANSWER, |f, phv| phv.set(f.record, u64::from(record)));
        let (f, phv) = (&self.fields, &self.phv);
        let (at, version, psn) = layout::parse_append(phv.get(f.appended))?;
        let found = phv.get(f.found_state);
        Some(Recorded {
            at,
            version,
            psn,
            index: phv.get(f.of_key),
            front: layout::parse_tail(phv.get(f.behind)),
            state: found & 0xff,
            compared: EntryVersion((found >> 8) as u8),
        })
    }

    /// What the memory says to an atomic.
    pub(super) fn on_answer(&mut self, number: usize, packet: &mut Packet, original: u64) -> Action {
        let record = self.record(number, packet.psn);
        let Some(found) = self.recorded(record).filter(|found| found.index != 0) else {
            return Action::Forward;
        };
        let said = self.judge(record, &found, packet.psn, original);
        if said == verdict::WAIT {
            self.counters.waited += 1;
            return Action::Drop;
        }
        if let Some(reply) = self.reply(said, &found)
            && self.rules.holds(Rule::OriginalIsRewritten)
        {
            deparser::reply(packet, reply);
        }
        Action::Forward
    }

    /// What this verdict is to the client; none: what the memory has said. It is counted.
    pub(super) const fn reply(&mut self, said: u64, found: &Recorded) -> Option<Reply> {
        let (reply, count) = match (said, found.front) {
            (verdict::STEERED, Some((at, version, _))) => {
                (Reply::Steered(at, version), &mut self.counters.appended)
            }
            (verdict::REFUSED, _) => (Reply::Refused, &mut self.counters.refused),
            (verdict::INDETERMINATE, _) => (Reply::Indeterminate, &mut self.counters.indeterminate),
            _ => return None,
        };
        *count += 1;
        Some(reply)
    }

    /// What became of the append of this record, if the packet with this number is answered that the word was this.
    pub(super) fn judge(&mut self, record: u32, found: &Recorded, psn: Psn, original: u64) -> u64 {
        let &Recorded { at, version, front, compared, index, .. } = found;
        let flags = found.state & !state::MASK;
        let mut of_front = (0, 0);
        if let Some((at, version, 0)) = front {
            of_front = (layout::entry(at, version), state::APPENDED);
        } else if let Some((.., record)) = front {
            self.pass(class::FRONT, |f, phv| phv.set(f.record, u64::from(record)));
            let (f, phv) = (&self.fields, &self.phv);
            let entry = layout::parse_append(phv.get(f.appended))
                .map_or(0, |(at, version, _)| layout::entry(at, version));
            of_front = (entry, phv.get(f.found_state) & state::MASK);
        }
        let expected = found.expected();
        self.pass(class::SETTLE, |f, phv| {
            phv.set(f.record, u64::from(record));
            phv.set(f.number, u64::from(psn.get()));
            phv.set(f.recorded_number, u64::from(found.psn.get()));
            phv.set(f.original, original);
            phv.set(f.expected, expected);
            phv.set(f.front, front.map_or(0, |(at, version, _)| layout::entry(at, version)));
            phv.set(f.found_front, of_front.0);
            phv.set(f.front_state, of_front.1);
            phv.set(f.native, u64::from(front.is_none()));
            phv.set(f.state, found.state & state::MASK);
            for (field, state) in f.marks.into_iter().zip([state::APPENDED, state::FAILED, state::LOST]) {
                phv.set(field, mark(compared, state | flags));
            }
            phv.set(f.index, index);
            // What is learned has been acknowledged.
            phv.set(f.tail, layout::tail(at, version, if front.is_none() { 0 } else { record }));
        });
        let said = self.phv.get(self.fields.verdict);
        let is_taught = self.phv.get(self.fields.tail_op) == layout::op::TEACH && index != self.nowhere();
        self.counters.tails += u64::from(is_taught);
        if said == verdict::AGAIN && index != self.nowhere() {
            let bits = self.sizes.slots.trailing_zeros();
            let candidate = layout::outstanding(at.unit(), version, bits) | index;
            self.learn(class::LEARN, at.unit(), [1, 0, 0], [candidate, 0, 0]);
        }
        said
    }
}

impl Recorded {
    /// What the word must have been for the append to be in the chain.
    pub(super) fn expected(&self) -> u64 {
        Word::tail(self.front.map_or(self.compared, |(_, version, _)| version)).to_bits()
    }
}
