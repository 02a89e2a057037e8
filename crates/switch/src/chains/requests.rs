//! Requests: entries that are written, and appends.
//!
//! What must always hold: two copies of an append leave alike.

use wire::chains::EntryVersion;
use wire::roce::{Packet, Psn};
use wire::{Rule, Rules};

use super::connections::Connection;
use super::counters::Unsteered;
use super::deparser;
use super::keys;
use super::layout::{self, WAYS, class, state};
use super::machine::{Steering, mark, number_of};
use super::parser::Append;

impl<R: Rules> Steering<R> {
    /// An entry is on its way to its slot.
    pub(super) fn on_entry(&mut self, number: usize, psn: Psn, unit: u32, version: EntryVersion, key: u64) {
        let (sizes, bits) = (self.sizes, self.sizes.slots.trailing_zeros());
        let cells = keys::cells(key, &sizes.ways);
        self.pass(class::WRITE, |f, phv| {
            number_of(f, phv, number, psn);
            phv.set(f.key, !key);
            for (field, cell) in f.sets.into_iter().zip(cells) {
                phv.set(field, cell as u64);
            }
        });
        let f = &self.fields;
        let is_new = self.phv.get(f.new) != 0 || !self.rules.holds(Rule::NumbersAreNew);
        let held = f.hit.map(|hit| self.phv.get(hit));
        let tag = layout::outstanding(unit, version, bits);
        let indexes: [u32; WAYS] = core::array::from_fn(|way| sizes.index(way, cells[way]));
        let candidates = indexes.map(|index| tag | u64::from(index));
        match held.iter().position(|held| *held == 1) {
            Some(way) if is_new => {
                self.keys.name(indexes[way]);
                self.counters.learned += 1;
                self.learn(class::LEARN, unit, held, candidates);
            }
            _ if !self.rules.holds(Rule::LastWriteCounts) => {}
            // Where no way holds the key, this leaves nothing.
            _ => self.learn(if is_new { class::LEARN } else { class::KEEP }, unit, held, candidates),
        }
        if is_new {
            self.on_write(key, held.contains(&1));
        }
    }

    pub(super) fn learn(&mut self, class: u64, unit: u32, held: [u64; WAYS], candidates: [u64; WAYS]) {
        let slot = layout::slot(unit, self.sizes.slots.trailing_zeros());
        self.pass(class, |f, phv| {
            phv.set(f.slot, slot);
            for way in 0..WAYS {
                phv.set(f.held[way], held[way]);
                phv.set(f.candidates[way], candidates[way]);
            }
        });
    }

    /// An atomic on its way to the memory.
    pub(super) fn on_swap(
        &mut self,
        number: usize,
        connection: &Connection,
        packet: &mut Packet,
        append: Option<Append>,
    ) {
        let (psn, record) = (packet.psn, self.record(number, packet.psn));
        let bits = self.sizes.slots.trailing_zeros();
        self.pass(class::SWAP, |f, phv| {
            number_of(f, phv, number, psn);
            phv.set(f.record, u64::from(record));
            if let Some(Append { at, version, compared }) = append {
                phv.set(f.slot, layout::slot(at.unit(), bits));
                phv.set(f.outstanding, layout::outstanding(at.unit(), version, bits));
                phv.set(f.append, layout::append(at, version, psn));
                phv.set(f.tail, layout::tail(at, version, record));
                phv.set(f.mark, mark(compared, state::PENDING));
            }
        });
        let Some(append) = append else { return };
        let (f, phv) = (&self.fields, &self.phv);
        let is_new = phv.get(f.new) != 0 || !self.rules.holds(Rule::NumbersAreNew);
        let (is_known, behind) = if is_new {
            (phv.get(f.index) != 0, phv.get(f.before))
        } else {
            let is_recorded =
                phv.get(f.same) != 0 && phv.get(f.of_key) != 0 && self.rules.holds(Rule::RepeatsAreAlike);
            (is_recorded, phv.get(f.behind))
        };
        match (is_known, is_new, layout::parse_tail(behind)) {
            (true, _, Some((to, version, _))) => {
                let before = packet.extension;
                deparser::steer(self.rules, packet, connection.base, (to, version), &append);
                self.counters.moved += u64::from(is_new && packet.extension != before);
                *(if is_new { &mut self.counters.steered } else { &mut self.counters.repeated }) += 1;
            }
            (true, true, None) => self.counters.leave(Unsteered::TailUnknown),
            (false, true, _) => self.counters.leave(Unsteered::NotOutstanding),
            (_, false, _) => self.counters.leave(Unsteered::NotNew),
        }
    }
}
