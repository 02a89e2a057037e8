//! Packets where words are bound to queue pairs: compare-and-swaps, what stands for them in their own queue pair, and answers on the
//! bound ones.
//!
//! What must always hold: a client is told of its append when the append is settled and its own queue pair has come so far.

use wire::chains::{EntryVersion, Location, Reply, Word};
use wire::roce::{Aeth, Extension, NakCode, Opcode, Packet, Psn, Reth, Syndrome};
use wire::{Rule, Rules};

use super::answers::Recorded;
use super::binding::Sent;
use super::connections::Connection;
use super::counters::Unsteered;
use super::deparser;
use super::layout::{self, class, kind, state, verdict};
use super::machine::{Action, Steering, mark, number_of};
use super::parser::{self, Append, Change};
use super::program::Arrays;
use super::waiting::Waiting;
use crate::pipeline::alu;

/// Where something is sent to stand behind.
#[derive(Clone, Copy)]
struct Target {
    to: (Location, EntryVersion),
    /// The switch has chosen it, and its own append is acknowledged.
    is_settled: bool,
}

impl<R: Rules> Steering<R> {
    /// A compare-and-swap whose connection has no number, or that finds no bound queue pair: it reaches no word.
    pub(super) fn put_off(&mut self, packet: &mut Packet, why: Unsteered) -> Action {
        self.counters.leave(why);
        fill(packet);
        Action::Forward
    }

    /// An atomic on its way to the memory.
    pub(super) fn on_bound_swap(
        &mut self,
        number: usize,
        connection: &Connection,
        packet: &mut Packet,
        is_append: bool,
    ) -> Action {
        let Extension::Atomic(word) = packet.extension else { return Action::Forward };
        if word.key != connection.region {
            self.pass(class::REQUEST, |f, phv| number_of(f, phv, number, packet.psn));
            return Action::Forward;
        }
        let Some(change) = parser::change(packet, &word, connection) else {
            self.counters.leave(Unsteered::Unbindable);
            return Action::Drop;
        };
        if self.bound.iter().any(Option::is_none) {
            self.pass(class::REQUEST, |f, phv| number_of(f, phv, number, packet.psn));
            return self.put_off(packet, Unsteered::UnknownPeer);
        }
        let (psn, record) = (packet.psn, self.record(number, packet.psn));
        self.look_up(number, psn, record, &change, is_append);
        let (f, phv) = (&self.fields, &self.phv);
        let (is_new, is_same) =
            (phv.get(f.new) != 0 || !self.rules.holds(Rule::NumbersAreNew), phv.get(f.same) != 0);
        let (index, before, appended) = (phv.get(f.index), phv.get(f.before), phv.get(f.appended));
        let is_own = if is_new {
            let steered = layout::parse_tail(before).filter(|_| index != 0);
            match steered {
                Some((to, ..)) => {
                    self.counters.steered += 1;
                    self.counters.moved += u64::from(to.unit() != change.to.unit());
                }
                None if index != 0 => self.counters.leave(Unsteered::TailUnknown),
                None => self.counters.leave(Unsteered::NotOutstanding),
            }
            self.send_new(record, psn, &change)
        } else if is_same {
            self.counters.repeated += 1;
            self.repeat(record, psn, &change)
        } else {
            let recorded = layout::parse_append(appended).map(|(_, _, psn)| psn);
            let is_old = recorded.is_some_and(|recorded| recorded.since(psn) >= 0);
            if is_old || self.is_out_of_window(number, psn) {
                return Action::Drop;
            }
            // It has come late, and for the first time.
            self.counters.leave(Unsteered::NotNew);
            let Arrays { appends, of_keys, behind, states, .. } = self.arrays;
            let Append { at, version, compared } = change.append;
            for (array, value) in [
                (appends, layout::append(at, version, psn)),
                (of_keys, 0),
                (behind, 0),
                (states, mark(compared, state::PENDING)),
            ] {
                self.program.set_cell(array, record as usize, value);
            }
            self.send_new(record, psn, &change)
        };
        let front = self.program.cell(self.arrays.behind, record as usize).and_then(layout::parse_tail);
        match front {
            Some((to, version, _)) if is_own => {
                deparser::steer(self.rules, packet, connection.base, (to, version), &change.append);
            }
            None if is_own => {}
            _ => fill(packet),
        }
        Action::Forward
    }

    fn look_up(&mut self, number: usize, psn: Psn, record: u32, change: &Change, is_append: bool) {
        let bits = self.sizes.slots.trailing_zeros();
        let Append { at, version, compared } = change.append;
        self.pass(class::SWAP, |f, phv| {
            number_of(f, phv, number, psn);
            phv.set(f.record, u64::from(record));
            if is_append {
                phv.set(f.slot, layout::slot(at.unit(), bits));
                phv.set(f.outstanding, layout::outstanding(at.unit(), version, bits));
            }
            phv.set(f.append, layout::append(at, version, psn));
            phv.set(f.tail, layout::tail(at, version, record));
            phv.set(f.mark, mark(compared, state::PENDING));
        });
    }

    /// So many numbers later, its record may have been another's.
    fn is_out_of_window(&self, number: usize, psn: Psn) -> bool {
        let next = self.program.cell(self.arrays.numbers, number).unwrap_or(0) >> 8;
        Psn::new(next as u32).since(psn) >= self.config.window as i32
    }

    /// Sends a compare-and-swap whose record is there, on the bound queue pair of its word. True: it goes on its client's own.
    pub(super) fn send_new(&mut self, record: u32, psn: Psn, change: &Change) -> bool {
        let front = self.program.cell(self.arrays.behind, record as usize).and_then(layout::parse_tail);
        let target = match front {
            Some((to, version, of)) => {
                let is_settled = of == 0 || !self.rules.holds(Rule::WritesTakeWhatIsAcknowledged);
                Target { to: (to, version), is_settled }
            }
            None => Target { to: (change.to, change.append.compared), is_settled: false },
        };
        let is_own = self.send_to(record, psn, &change.append, target);
        if !is_own && self.state_of(record) & state::UNBOUND != 0 {
            let at = self.bound_of(target.to.0);
            self.wait(Waiting { at, record, psn, change: *change });
        }
        is_own
    }

    fn send_to(&mut self, record: u32, psn: Psn, append: &Append, target: Target) -> bool {
        let (to, version) = target.to;
        let at = self.bound_of(to);
        let bits = self.sizes.slots.trailing_zeros();
        let last_cell = self.last_cell(at) as u64;
        self.pass(class::OPEN, |f, phv| {
            phv.set(f.connection, last_cell);
            phv.set(f.slot, layout::slot(to.unit(), bits));
            let tag = layout::appended(to.unit(), bits) | layout::outstanding(0, version, bits);
            phv.set(f.outstanding, tag);
        });
        let last = self.phv.get(self.fields.new) as u32;
        let is_open = self.phv.get(self.fields.index) != 0;
        let binding = self.config.binding;
        let is_write = binding.writes
            && target.is_settled
            && (is_open || !self.rules.holds(Rule::WritesFindNothingSent));
        let what = if is_write { kind::WRITE } else { kind::SWAP };
        // Of numbers up to the next one less as many as may be in flight, the memory must have passed all.
        let mut passed = Psn::new(last.wrapping_add(1).wrapping_sub(binding.window));
        let mut turn = 0;
        if !is_write {
            let (next, before) = self.next_turn(at);
            turn = next;
            if before.since(passed) > 0 {
                passed = before;
            }
        }
        let passed = u64::from(passed.get()) << 8;
        let heard_cell = self.heard_cell(at) as u64;
        self.pass(class::ROOM, |f, phv| {
            phv.set(f.connection, heard_cell);
            phv.set(f.sequence, passed);
        });
        if self.phv.get(self.fields.new) != alu::HIT {
            // No WRITE is in flight to the word, and none will be.
            let is_apart = !binding.writes || is_open || !self.rules.holds(Rule::OverflowsAreFirst);
            self.counters.crowded += 1;
            let flag = if is_apart { state::OWN } else { state::UNBOUND };
            self.set_state(record, |state| state | flag);
            return is_apart;
        }
        let first_record = u64::from(self.bound_record(at, Psn::new(0)));
        let low_mask = self.sizes.numbers as u64 - 1;
        self.pass(class::BIND, |f, phv| {
            phv.set(f.connection, last_cell);
            phv.set(f.one, 1);
            phv.set(f.number_mask, 0xff_ffff);
            phv.set(f.low_mask, low_mask);
            phv.set(f.first_record, first_record);
            phv.set(f.kind, layout::bound(what, Psn::new(0)));
            phv.set(f.before, layout::tail(to, version, record));
            phv.set(f.append, layout::append(append.at, append.version, psn));
            phv.set(f.mark, u64::from(psn.get() & 0xffff));
        });
        let number = Psn::new(self.phv.get(self.fields.new) as u32);
        if !is_write {
            let turns_cell = self.turns_cell(at) as u64;
            self.pass(class::TAKEN, |f, phv| {
                phv.set(f.connection, turns_cell);
                phv.set(f.one, 1);
                phv.set(f.record, u64::from(turn));
                phv.set(f.index, u64::from(number.get()));
            });
        }
        self.counters.bound += 1;
        self.counters.written += u64::from(is_write);
        self.counters.most_in_flight = self.counters.most_in_flight.max(self.in_flight(at));
        if !is_write {
            self.counters.most_atomics = self.counters.most_atomics.max(self.atomics_in_flight(at));
        }
        self.send_bound(at, number);
        false
    }

    /// The turn of the next atomic of a bound queue pair, and the number that it had last.
    fn next_turn(&mut self, at: usize) -> (u32, Psn) {
        let (turns_cell, first) = (self.turns_cell(at) as u64, self.turn_record(at, 0));
        let mask = self.sizes.atomics as u64 - 1;
        self.pass(class::TURN, |f, phv| {
            phv.set(f.connection, turns_cell);
            phv.set(f.low_mask, mask);
            phv.set(f.first_record, u64::from(first));
        });
        let (f, phv) = (&self.fields, &self.phv);
        (first + (phv.get(f.new) & mask) as u32, Psn::new(phv.get(f.of_key) as u32))
    }

    /// A compare-and-swap comes again: what is missing is sent. True: it goes on its client's own queue pair.
    fn repeat(&mut self, record: u32, psn: Psn, change: &Change) -> bool {
        let found = self.state_of(record);
        if found & state::OWN != 0 {
            return true;
        }
        if found & state::MASK != state::PENDING {
            return false;
        }
        if found & state::UNBOUND != 0 || !self.rules.holds(Rule::NumbersAreTakenOnce) {
            self.set_state(record, |state| state & !state::UNBOUND);
            return self.send_new(record, psn, change);
        }
        if found & state::MATCHED != 0 {
            // What stands in front may have been acknowledged by now.
            self.settle(record, psn, None);
        } else if let Some((at, number)) = self.find_bound(record) {
            self.ask_for(record, psn, (at, number));
        } else {
            self.lose(record);
        }
        false
    }

    /// What this number was for is not answered.
    fn ask_for(&mut self, record: u32, psn: Psn, (at, number): (usize, Psn)) {
        let what =
            self.program.cell(self.arrays.of_keys, self.bound_record(at, number) as usize).unwrap_or(0);
        if number.since(self.heard(at)) >= 0 {
            self.send_again(at);
        } else if what >> 24 == kind::WRITE {
            // It was executed.
            self.settle(record, psn, None);
        } else if self.is_replayed(at, number) {
            self.send_bound(at, number);
        } else {
            // The memory cannot tell any more.
            self.lose(record);
        }
    }

    /// Something has come on a bound queue pair.
    pub(super) fn on_bound(&mut self, at: usize, packet: &Packet) -> Action {
        match (packet.opcode, packet.extension) {
            (Opcode::AtomicAcknowledge, Extension::AethAtomic(_, original)) => {
                self.on_heard(at, packet.psn, Some(original));
            }
            (Opcode::Acknowledge, Extension::Aeth(aeth)) => match aeth.syndrome {
                Syndrome::Ack(_) => self.on_heard(at, packet.psn, None),
                Syndrome::RnrNak(_) => {}
                Syndrome::Nak(NakCode::SequenceError) => {
                    self.on_heard(at, packet.psn.before(), None);
                    self.send_again(at);
                }
                Syndrome::Nak(_) => {
                    self.counters.broken += 1;
                    self.unbind(at);
                }
            },
            _ => {}
        }
        Action::Drop
    }

    /// The memory has come so far; and what a word was.
    fn on_heard(&mut self, at: usize, number: Psn, original: Option<u64>) {
        let (cell, bound) = (self.heard_cell(at) as u64, self.bound_record(at, number));
        self.pass(class::HEARD, |f, phv| {
            phv.set(f.connection, cell);
            phv.set(f.sequence, u64::from(number.get()) << 8);
            phv.set(f.record, u64::from(bound));
        });
        let (f, phv) = (&self.fields, &self.phv);
        let (what, psn) = (phv.get(f.of_key), phv.get(f.found_state));
        let Some((.., record)) = layout::parse_tail(phv.get(f.behind)) else { return self.let_in(at) };
        let is_write = what == layout::bound(kind::WRITE, number);
        let is_swap = what == layout::bound(kind::SWAP, number) && original.is_some();
        // Is the record still that packet's?
        let psn = self.psn_of(record).filter(|of| u64::from(of.get() & 0xffff) == psn);
        if let Some(psn) = psn
            && (is_write || is_swap)
        {
            self.settle(record, psn, original.filter(|_| is_swap));
        }
        self.let_in(at);
    }

    /// The append of this record was executed, and the word was this; none: what was expected. Its client is told, if its own queue pair
    /// has come so far.
    fn settle(&mut self, record: u32, psn: Psn, original: Option<u64>) {
        let Some(found) = self.bound_recorded(record) else { return };
        if found.state & state::MASK != state::PENDING {
            return;
        }
        let original = original.unwrap_or_else(|| found.expected());
        let said = self.judge(record, &found, psn, original);
        if said == verdict::WAIT {
            self.counters.waited += 1;
            self.flag(record, state::MATCHED);
            return;
        }
        if found.state & state::FILLED == 0 && self.rules.holds(Rule::FillersAreAwaited) {
            return;
        }
        let reply = self.reply(said, &found).filter(|_| self.rules.holds(Rule::OriginalIsRewritten));
        let reply = reply.unwrap_or(Reply::Original(original));
        let number = (record as usize - 1) / self.config.window as usize;
        let Some(Connection { client, memory, .. }) = self.connections.of(number) else { return };
        // What the message number is, the switch does not know. It is for credits, which nobody keeps.
        let aeth = Aeth { syndrome: Syndrome::NO_CREDITS, messages: 0 };
        let extension = Extension::AethAtomic(aeth, reply.to_bits());
        let packet = Packet::new(Opcode::AtomicAcknowledge, client.queue_pair, psn, extension);
        self.sent.push_back(Sent { from: memory.node, to: client.node, packet, word: None });
    }

    /// A record, of whatever key.
    fn bound_recorded(&mut self, record: u32) -> Option<Recorded> {
        let found = self.recorded(record)?;
        let index = if found.index == 0 { self.nowhere() } else { found.index };
        Some(Recorded { index, ..found })
    }

    fn flag(&mut self, record: u32, flag: u64) {
        self.pass(class::FILLED, |f, phv| {
            phv.set(f.record, u64::from(record));
            phv.set(f.mark, flag);
        });
    }

    /// What stands for an atomic in its own queue pair has been executed.
    pub(super) fn on_filled(&mut self, number: usize, packet: &mut Packet) -> Action {
        let record = self.record(number, packet.psn);
        let Some(found) = self.bound_recorded(record).filter(|found| found.psn == packet.psn) else {
            return self.indeterminate(packet);
        };
        self.flag(record, state::FILLED);
        let mut settled = found.state & state::MASK;
        if settled == state::PENDING && found.state & state::MATCHED != 0 {
            let found = Recorded { state: found.state | state::FILLED, ..found };
            _ = self.judge(record, &found, packet.psn, found.expected());
            settled = self.program.cell(self.arrays.states, record as usize).unwrap_or(0) & state::MASK;
        }
        let said = match settled {
            state::APPENDED if found.front.is_some() => verdict::STEERED,
            state::APPENDED => verdict::NATIVE,
            state::FAILED => verdict::REFUSED,
            state::LOST => verdict::INDETERMINATE,
            _ => return Action::Drop,
        };
        let reply = self.reply(said, &found).filter(|_| self.rules.holds(Rule::OriginalIsRewritten));
        answer(packet, reply.unwrap_or(Reply::Original(Word::tail(found.compared).to_bits())));
        Action::Forward
    }

    /// The client is told that nobody knows.
    pub(super) fn indeterminate(&mut self, packet: &mut Packet) -> Action {
        self.counters.indeterminate += 1;
        answer(packet, Reply::Indeterminate);
        Action::Forward
    }
}

/// A READ of no bytes in the place of an atomic.
fn fill(packet: &mut Packet) {
    if let Extension::Atomic(word) = packet.extension {
        packet.opcode = Opcode::ReadRequest;
        packet.extension = Extension::Reth(Reth { address: word.address, key: word.key, length: 0 });
    }
}

/// The answer to it becomes one to the atomic.
fn answer(packet: &mut Packet, reply: Reply) {
    if let Extension::Aeth(aeth) = packet.extension {
        packet.opcode = Opcode::AtomicAcknowledge;
        packet.extension = Extension::AethAtomic(aeth, reply.to_bits());
    }
}
