//! Bound queue pairs: all compare-and-swaps of a word reach the memory on one queue pair, whose requester is the switch.
//!
//! ```text
//!   client                      switch                                        memory
//!     │── CmpSwap p: x → s ──────> t is the tail ── CmpSwap q: t → s ── b ─────>│   b: the bound queue pair of t
//!     │                                └─────────── READ p of 0 bytes ── c ────>│   c: the client's own
//!     │                             p has come so far <── answer p ────── c ────│
//!     │<── answer p: behind t ────  s is in the chain <── answer q ────── b ────│
//! ```
//!
//! A NIC executes atomics of one queue pair faster than those of several, which it has to lock against each other. And what is sent on
//! one queue pair is executed in its order, so that the switch knows what a word is: a compare-and-swap of which it knows that the word is
//! that of a tail becomes a WRITE of the new word ([`Binding::writes`](super::config::Binding)).
//!
//! # Numbers
//! - In the client's own queue pair a READ of no bytes takes the place of the atomic, under its number, so that the client's numbers have no gap.
//!   (A WRITE of no bytes would do, too. But acknowledgements of WRITEs stand for all before them, and a repeated one
//!   is answered with the latest number; a READ is answered under its own, as often as it comes.) The client is told when both
//!   are answered, for what it is told under a number says that everything before that was executed.
//! - A compare-and-swap takes the next number of its word's bound queue pair once. What was sent under a number is sent under it again,
//!   or nothing is: a WRITE of no bytes, when its client is gone. So whatever copies of it are in flight, the memory executes one
//!   of them, and a number that was taken is no gap.
//! - There is room if less than [`Binding::window`](super::config::Binding) numbers are not acknowledged. Atomics are counted apart: less than
//!   [`Binding::atomics`](super::config::Binding) of them may be in flight, for the memory cannot replay more. They take turns, each of which
//!   says which number it had last: that one must be acknowledged. One for which there is no room takes no number, and goes on its client's own queue pair, if nothing else was sent to its word: then no WRITE is in flight to it, and none
//!   will be. Otherwise it goes round in the switch until there is capacity, or its client asks again (`waiting.rs`).
//!
//! # Clients
//! The two steps of an append are on two queue pairs, and nothing orders these: the compare-and-swap is sent when the WRITE is acknowledged. So clients must not post both
//! at once: [`Binding::lets_clients_swap_at_once`](super::config::Binding::lets_clients_swap_at_once).
//!
//! # Repeats
//! A client whose compare-and-swap stays unanswered sends it again: then the control plane sends everything of the bound queue pair again that is
//! not acknowledged, in the order of its numbers, from the records. So it does when the memory asks for a number.
//!
//! # Incarnations
//! A bound queue pair is made by the control plane ([`Steering::bind`]), with a random first number, and made anew when the memory has refused
//! something for good, or the switch is another one. What was in flight on the one before is not executed any more by then, and is indeterminate. While one
//! is missing, compare-and-swaps are indeterminate at once: they reach no word.
//!
//! What must always hold: in an incarnation of the switch no compare-and-swap reaches a word to which a WRITE is sent but on the bound queue pair of that word, and an entry's
//! cell of OUTSTANDING says *appended* only if nothing was sent to stand behind it since its own append.

use core::ops::Range;

use wire::chains::{Location, Next, Word};
use wire::roce::{AtomicEth, Extension, Key, Opcode, Packet, Psn, Reth};
use wire::{NodeId, Rule, Rules};

use super::connections::End;
use super::layout::{self, kind, state};
use super::machine::{Steering, mark};
use crate::pipeline::primitive::spread;

/// The location that stands for the end of a chain.
const CLOSED: u32 = u32::MAX;

/// A bound queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The switch's end.
    pub switch: End,
    /// Who executes.
    pub memory: End,
    /// The first number.
    pub first_psn: Psn,
    /// The store's memory region.
    pub region: Key,
    /// The address of unit 0 in it.
    pub base: u64,
}

/// A packet that the switch itself sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// In whose name.
    pub from: NodeId,
    /// To whom.
    pub to: NodeId,
    /// The packet.
    pub packet: Packet,
    /// What it writes.
    pub word: Option<u64>,
}

impl<R: Rules> Steering<R> {
    /// The next packet that the switch itself sends, in their order: to be asked for after each packet, and after each call of the control plane.
    pub fn next_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    /// The bound queue pairs that are missing: their numbers for [`Steering::bind`].
    pub fn unbound(&self) -> impl Iterator<Item = usize> {
        self.bound.iter().enumerate().filter(|(_, bound)| bound.is_none()).map(|(at, _)| at)
    }

    /// A bound queue pair begins, anew if there was one: nothing that was sent on that one and not executed ever will be.
    pub fn bind(&mut self, at: usize, bound: Bound) {
        self.unbind(at);
        let numbers = self.arrays.numbers;
        self.program.set_cell(numbers, self.last_cell(at), u64::from(bound.first_psn.before().get()));
        self.program.set_cell(numbers, self.heard_cell(at), u64::from(bound.first_psn.get()) << 8 | 1);
        self.program.set_cell(numbers, self.turns_cell(at), 0);
        for turn in 0..self.sizes.atomics {
            self.set_turn(at, turn, bound.first_psn.before());
        }
        self.bound[at] = Some(bound);
    }

    /// A bound queue pair is no more: what is in flight on it is indeterminate.
    pub(super) fn unbind(&mut self, at: usize) {
        self.bound[at] = None;
        self.waiting.retain(|waiting| waiting.at != at);
        if !self.rules.holds(Rule::BegunAnewIsIndeterminate) {
            return;
        }
        let first = self.bound_record(at, Psn::new(0)) as usize;
        for record in first..first + self.sizes.numbers {
            let whose = self.program.cell(self.arrays.behind, record).and_then(layout::parse_tail);
            let kind = self.program.cell(self.arrays.of_keys, record).unwrap_or(0) >> 24;
            self.program.set_cell(self.arrays.of_keys, record, 0);
            if let Some((.., whose)) = whose
                && matches!(kind, kind::SWAP | kind::WRITE)
            {
                self.lose(whose);
            }
        }
    }

    /// Nobody knows what becomes of this record's append.
    pub(super) fn lose(&mut self, record: u32) {
        let found = self.program.cell(self.arrays.states, record as usize).unwrap_or(0);
        if found & state::MASK != state::PENDING {
            return;
        }
        let lost = found & !state::MASK | state::LOST;
        self.program.set_cell(self.arrays.states, record as usize, lost);
        for index in 1..=self.sizes.indexes() {
            let tail = self.program.cell(self.arrays.tails, index).and_then(layout::parse_tail);
            if tail.is_some_and(|(.., of)| of == record) {
                self.program.set_cell(self.arrays.tails, index, 0);
            }
        }
    }

    /// The connection with these records is over: what it has in flight becomes a hole, which is filled.
    pub(super) fn fill_holes(&mut self, records: &Range<usize>) {
        for at in 0..self.sizes.bound {
            let first = self.bound_record(at, Psn::new(0)) as usize;
            let mut is_open = false;
            for record in first..first + self.sizes.numbers {
                let whose = self.program.cell(self.arrays.behind, record).and_then(layout::parse_tail);
                let number = self.program.cell(self.arrays.of_keys, record).unwrap_or(0) as u32;
                if self.rules.holds(Rule::HolesAreFilled)
                    && number != 0
                    && whose.is_some_and(|(.., whose)| records.contains(&(whose as usize)))
                {
                    let number = Psn::new(number);
                    self.program.set_cell(self.arrays.of_keys, record, layout::bound(kind::HOLE, number));
                    self.program.set_cell(self.arrays.behind, record, 0);
                    is_open |= number.since(self.heard(at)) >= 0;
                }
            }
            if is_open {
                self.send_again(at);
            }
        }
    }

    /// Sends everything again that is not acknowledged.
    pub(super) fn send_again(&mut self, at: usize) {
        let (mut number, last) = (self.heard(at), self.last(at));
        while number.since(last) <= 0 {
            self.send_bound(at, number);
            self.counters.resent += 1;
            number = number.plus(1);
        }
    }

    /// Sends what is for this number.
    pub(super) fn send_bound(&mut self, at: usize, number: Psn) {
        let Some(bound) = self.bound[at] else { return };
        let record = self.bound_record(at, number) as usize;
        let cell = |array| self.program.cell(array, record).unwrap_or(0);
        let what = cell(self.arrays.of_keys);
        let to = layout::parse_tail(cell(self.arrays.behind));
        let next = layout::parse_append(cell(self.arrays.appends));
        let nothing = Extension::Reth(Reth { address: bound.base, key: bound.region, length: 0 });
        let (opcode, extension, word) = match to.zip(next) {
            Some(((to, version, _), (next, next_version, _)))
                if what == layout::bound(kind::SWAP, number)
                    || what == layout::bound(kind::WRITE, number) =>
            {
                let next = match next.to_bits() {
                    CLOSED => Next::Closed,
                    _ => Next::Entry(next, next_version),
                };
                let (address, key) = (bound.base + to.offset(), bound.region);
                let compare = Word::tail(version);
                let word = compare.followed_by(next).to_bits();
                if what >> 24 == kind::WRITE {
                    (Opcode::WriteOnly, Extension::Reth(Reth { address, key, length: 8 }), Some(word))
                } else {
                    let atomic = AtomicEth { address, key, swap_or_add: word, compare: compare.to_bits() };
                    (Opcode::CompareSwap, Extension::Atomic(atomic), None)
                }
            }
            // Nobody's, or of somebody who is gone.
            _ => (Opcode::WriteOnly, nothing, None),
        };
        let mut packet = Packet::new(opcode, bound.memory.queue_pair, number, extension);
        packet.ack_request = true;
        let (from, to) = (bound.switch.node, bound.memory.node);
        self.sent.push_back(Sent { from, to, packet, word });
    }

    /// Which bound queue pair is that of this entry's word.
    pub(super) fn bound_of(&self, at: Location) -> usize {
        spread(u64::from(at.unit()), self.sizes.bound as u64) as usize
    }

    /// The cell with the last number of a bound queue pair.
    pub(super) const fn last_cell(&self, at: usize) -> usize {
        self.sizes.connections + at
    }

    /// The cell with how far the memory has come.
    pub(super) const fn heard_cell(&self, at: usize) -> usize {
        self.sizes.connections + self.sizes.bound + at
    }

    /// The cell with whose turn was last.
    pub(super) const fn turns_cell(&self, at: usize) -> usize {
        self.sizes.connections + 2 * self.sizes.bound + at
    }

    /// The record of a turn of a bound queue pair's atomics.
    pub(super) const fn turn_record(&self, at: usize, turn: usize) -> u32 {
        (self.sizes.records + self.sizes.bound * self.sizes.numbers + at * self.sizes.atomics + turn + 1)
            as u32
    }

    fn set_turn(&mut self, at: usize, turn: usize, number: Psn) {
        let record = self.turn_record(at, turn) as usize;
        self.program.set_cell(self.arrays.of_keys, record, u64::from(number.get()));
    }

    /// True if the memory can still replay this number: it keeps the last atomics, whatever else came between.
    pub(super) fn is_replayed(&self, at: usize, number: Psn) -> bool {
        let behind = self.last(at).since(number);
        let after = (1..=behind).map(|ahead| number.plus(ahead.unsigned_abs()));
        let is_atomic = |number: &Psn| {
            let cell = self.program.cell(self.arrays.of_keys, self.bound_record(at, *number) as usize);
            cell != Some(layout::bound(kind::WRITE, *number))
        };
        behind < self.sizes.numbers as i32 && after.filter(is_atomic).count() < self.sizes.atomics
    }

    /// Numbers come round: turns that were acknowledged long ago had the last one that is.
    pub(super) fn refresh_turns(&mut self) {
        for at in 0..self.sizes.bound {
            let last = self.heard(at).before();
            for turn in 0..self.sizes.atomics {
                let number = self.program.cell(self.arrays.of_keys, self.turn_record(at, turn) as usize);
                if self.bound[at].is_some() && last.since(Psn::new(number.unwrap_or(0) as u32)) > 0 {
                    self.set_turn(at, turn, last);
                }
            }
        }
    }

    /// The last number that was taken.
    pub(super) fn last(&self, at: usize) -> Psn {
        Psn::new(self.program.cell(self.arrays.numbers, self.last_cell(at)).unwrap_or(0) as u32)
    }

    /// The first one that is not acknowledged.
    pub(super) fn heard(&self, at: usize) -> Psn {
        Psn::new((self.program.cell(self.arrays.numbers, self.heard_cell(at)).unwrap_or(0) >> 8) as u32)
    }

    /// Numbers that the memory has not acknowledged.
    pub(super) fn in_flight(&self, at: usize) -> u64 {
        u64::try_from(self.last(at).since(self.heard(at)) + 1).unwrap_or(0)
    }

    /// Of those, atomics.
    pub(super) fn atomics_in_flight(&self, at: usize) -> u64 {
        let numbers = (0..self.in_flight(at) as u32).map(|ahead| self.heard(at).plus(ahead));
        let is_swap = |number: &Psn| {
            let cell = self.program.cell(self.arrays.of_keys, self.bound_record(at, *number) as usize);
            cell == Some(layout::bound(kind::SWAP, *number))
        };
        numbers.filter(is_swap).count() as u64
    }

    /// The record of a bound queue pair's number.
    pub(super) const fn bound_record(&self, at: usize, number: Psn) -> u32 {
        let low = number.get() as usize & (self.sizes.numbers - 1);
        (self.sizes.records + at * self.sizes.numbers + low + 1) as u32
    }

    /// Where this record's append was sent, if it was: the bound queue pair, and the number.
    pub(super) fn find_bound(&self, record: u32) -> Option<(usize, Psn)> {
        let psn = self.psn_of(record)?;
        for at in 0..self.sizes.bound {
            let first = self.bound_record(at, Psn::new(0)) as usize;
            for bound in first..first + self.sizes.numbers {
                let cell = |array| self.program.cell(array, bound).unwrap_or(0);
                let (what, state) = (cell(self.arrays.of_keys), cell(self.arrays.states));
                let whose = layout::parse_tail(cell(self.arrays.behind)).map(|(.., whose)| whose);
                let is_it = whose == Some(record) && state == u64::from(psn.get() & 0xffff);
                if is_it && matches!(what >> 24, kind::SWAP | kind::WRITE) {
                    return Some((at, Psn::new(what as u32)));
                }
            }
        }
        None
    }

    /// The number of the packet that this record is of.
    pub(super) fn psn_of(&self, record: u32) -> Option<Psn> {
        let cell = self.program.cell(self.arrays.appends, record as usize)?;
        layout::parse_append(cell).map(|(_, _, psn)| psn)
    }

    /// Changes the state of a record, as the control plane does.
    pub(super) fn set_state(&mut self, record: u32, change: impl FnOnce(u64) -> u64) {
        let found = self.program.cell(self.arrays.states, record as usize).unwrap_or(0);
        let compared = wire::chains::EntryVersion((found >> 8) as u8);
        self.program.set_cell(self.arrays.states, record as usize, mark(compared, change(found & 0xff)));
    }
}
