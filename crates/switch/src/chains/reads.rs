//! Reads of entries that may not be the tail any more, and what they bring.
//!
//! A READ is sent to the tail, also to one whose append is not acknowledged yet: what it brings passes when that is. The append was sent to the
//! memory first, so as a rule it is executed first and answered first. If its acknowledgement has not passed by then, the READ is sent
//! once more, a few times; and then to where its client sent it. Nothing is held: the answer itself is turned around.
//!
//! Copies of a READ may be sent to different entries, and each says itself which one it is. One that was sent elsewhere leaves a record of where it was
//! sent, and for what its client has asked; one that comes again passes as it is.
//!
//! What must always hold: what comes from an entry that its client has not asked for is in a chain, or is not passed on.

use wire::chains::{EntryVersion, Location};
use wire::roce::{Extension, Opcode, Packet, Psn, Reth};
use wire::{Nanos, Rule, Rules};

use super::answers::Recorded;
use super::binding::Sent;
use super::connections::Connection;
use super::deparser;
use super::layout::{self, class, state};
use super::machine::{Action, Steering, number_of};

/// How often a READ was sent once more: one bit each, of its record's state.
const AGAIN: [u64; 4] = [0x10, 0x20, 0x40, 0x80];

impl<R: Rules> Steering<R> {
    /// An entry is read.
    pub(super) fn on_read(
        &mut self,
        number: usize,
        connection: &Connection,
        packet: &mut Packet,
        at: Location,
    ) {
        let (psn, record) = (packet.psn, self.record(number, packet.psn));
        let bits = self.sizes.slots.trailing_zeros();
        // Where all that is sent to an entry is noted, only one that is not the tail any more is looked for.
        let superseded = if self.sizes.bound > 0 { layout::followed } else { layout::appended };
        self.pass(class::READ, |f, phv| {
            number_of(f, phv, number, psn);
            phv.set(f.record, u64::from(record));
            phv.set(f.slot, layout::slot(at.unit(), bits));
            phv.set(f.outstanding, superseded(at.unit(), bits));
            phv.set(f.append, layout::append(at, EntryVersion(0), psn));
        });
        let is_new = self.phv.get(self.fields.new) != 0 || !self.rules.holds(Rule::NumbersAreNew);
        let tail = layout::parse_tail(self.phv.get(self.fields.before));
        let Some((to, _, of)) = tail.filter(|(to, ..)| self.is_elsewhere(connection, at, *to)) else {
            return;
        };
        // The record of one that is not new is of the first.
        let is_sent = match self.config.reads_ahead {
            true => is_new,
            false => of == 0 || !self.rules.holds(Rule::ReadsTakeWhatIsAcknowledged),
        };
        if is_sent {
            deparser::read(packet, connection.base, to);
            self.counters.reads += 1;
            self.counters.reads_ahead += u64::from(of != 0);
        }
    }

    /// True if a READ of this entry is sent to that tail.
    fn is_elsewhere(&self, connection: &Connection, at: Location, tail: Location) -> bool {
        tail.class() == at.class() && tail != at && !self.connections.reads_as_asked(connection.client)
    }

    /// A READ has brought this entry; none: something else.
    pub(super) fn on_brought(
        &mut self,
        number: usize,
        connection: &Connection,
        packet: &Packet,
        brought: Option<(Location, EntryVersion)>,
    ) -> Action {
        let record = self.record(number, packet.psn);
        let Some(found) = self.recorded(record).filter(|found| found.psn == packet.psn) else {
            return Action::Forward;
        };
        let asked = found.at;
        let Some((to, version, of)) =
            found.front.filter(|(to, ..)| self.is_elsewhere(connection, asked, *to))
        else {
            return Action::Forward;
        };
        if brought.is_some_and(|(at, _)| at == asked) {
            // A copy that passed as it was.
            return Action::Forward;
        }
        let is_that = brought == Some((to, version))
            || !self.rules.holds(Rule::ReadsBringWhatTheyWereSentFor)
                && brought.is_some_and(|(at, _)| at == to);
        let became = if of == 0 { state::APPENDED } else { self.became(of, (to, version)) };
        let is_appended = became == state::APPENDED || !self.rules.holds(Rule::ReadsTakeWhatIsAcknowledged);
        if is_that && is_appended {
            return Action::Forward;
        }
        self.turn(connection, packet.psn, record, &found, matches!(became, state::PENDING | state::APPENDED));
        Action::Drop
    }

    /// What became of the append of this entry, if that is still what this record is of.
    fn became(&mut self, record: u32, entry: (Location, EntryVersion)) -> u64 {
        self.pass(class::FRONT, |f, phv| phv.set(f.record, u64::from(record)));
        let (f, phv) = (&self.fields, &self.phv);
        let is_its =
            layout::parse_append(phv.get(f.appended)).is_some_and(|(at, version, _)| (at, version) == entry);
        if is_its { phv.get(f.found_state) & state::MASK } else { state::LOST }
    }

    /// The answer becomes the READ again: of the tail, if its append is only not acknowledged yet, or of what its client has asked for.
    fn turn(&mut self, connection: &Connection, psn: Psn, record: u32, found: &Recorded, may_come: bool) {
        let again = AGAIN.into_iter().find(|bit| found.state & bit == 0).filter(|_| may_come);
        let to = match (again, found.front) {
            (Some(bit), Some((to, ..))) => {
                self.pass(class::FILLED, |f, phv| {
                    phv.set(f.record, u64::from(record));
                    phv.set(f.mark, bit);
                });
                to
            }
            _ => found.at,
        };
        let &Connection { client, memory, region, base, .. } = connection;
        let length = u32::try_from(to.class().bytes()).expect("a slot is short");
        let reth = Reth { address: base + to.offset(), key: region, length };
        let packet = Packet::new(Opcode::ReadRequest, memory.queue_pair, psn, Extension::Reth(reth));
        self.sent.push_back(Sent { from: client.node, to: memory.node, packet, word: None });
        self.counters.reads_turned += 1;
    }

    /// A READ has brought something to a queue pair that is not known: it may have been sent elsewhere in another incarnation of the switch, or of its
    /// connection, for as long as an answer may be in flight. It is refused, so that its client begins a connection that is known: if it were dropped, the client would ask for it until
    /// its NIC gives the connection up, and learn nothing that it does not learn now.
    pub(super) fn on_brought_to_unknown_peer(&mut self, now: Nanos, packet: &mut Packet) -> Action {
        if self.config.reads == 0
            || !self.config.reads_ahead
            || !self.rules.holds(Rule::UnknownPeersReadNothing)
        {
            return Action::Forward;
        }
        let until = *self.strange_until.get_or_insert(now + self.config.lifetime);
        if now >= until {
            return Action::Forward;
        }
        deparser::refuse(packet);
        self.counters.reads_refused += 1;
        Action::Bare
    }
}
