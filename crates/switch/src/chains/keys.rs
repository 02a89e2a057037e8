//! Which keys are held: their places, and who gets one. The control plane's work, beside the pipeline.
//!
//! A key may stand in one cell of each way. If all of them are taken, keys that stand there go to other cells of theirs.
//! The hottest keys get places: writes are counted, and from time to time whoever is hotter replaces whoever is colder.
//!
//! What must always hold: a key has one place; when it leaves, nothing in the pipeline names the place any more.

use alloc::vec::Vec;

use random::{GOLDEN, mix};
use sorted::Map;
use wire::{Rule, Rules};

use super::layout::WAYS;
use super::machine::Steering;
use crate::pipeline::primitive::spread;

/// Writes after which keys are ranked.
const PERIOD: u32 = 4096;
/// How many keys in a row may move to make room for one.
const MOVES: u32 = 7;

/// What the control plane knows of keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    /// The keys that are held, and where: from 1.
    places: Map<u64, u32>,
    by_place: Map<u32, u64>,
    /// Writes of keys since they were last ranked, and half of those before.
    heat: Map<u64, u32>,
    writes: u32,
    /// Places that the pipeline may name.
    named: Vec<bool>,
}

impl Keys {
    /// The pipeline names these places from now on.
    pub(super) fn name(&mut self, place: u32) {
        let at = place as usize;
        if self.named.len() <= at {
            self.named.resize(at + 1, false);
        }
        self.named[at] = true;
    }

    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    pub(super) fn place(&self, key: u64) -> Option<u32> {
        self.places.get(&key).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (u64, u32)> {
        self.places.iter().map(|(key, place)| (*key, *place))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The cells of a key, one a way. On the chip each way hashes with another polynomial.
pub(super) fn cells(key: u64, ways: &[usize; WAYS]) -> [usize; WAYS] {
    core::array::from_fn(|way| {
        let mixed = mix(key.wrapping_add((way as u64 + 1).wrapping_mul(GOLDEN)));
        usize::try_from(spread(mixed, ways[way] as u64)).expect("below the number of cells")
    })
}

impl<R: Rules> Steering<R> {
    /// A key was written: is it hot?
    pub(super) fn on_write(&mut self, key: u64, is_held: bool) {
        let top = self.config.top;
        if top == 0 || self.config.keys == 0 {
            return;
        }
        if !is_held && self.keys.count() < top {
            self.admit(key);
        }
        if top >= self.config.keys {
            return;
        }
        *self.keys.heat.entry(key).or_default() += 1;
        self.keys.writes += 1;
        if self.keys.writes >= PERIOD {
            self.rank();
        }
    }

    /// The hottest keys get the places of the coldest ones.
    fn rank(&mut self) {
        self.keys.writes = 0;
        let heat = |keys: &Keys, key: u64| keys.heat.get(&key).copied().unwrap_or(0);
        let mut cold: Vec<(u32, u64)> =
            self.keys.all().map(|(key, _)| (heat(&self.keys, key), key)).collect();
        cold.sort_unstable_by(|one, other| other.cmp(one));
        let mut hot: Vec<(u32, u64)> = self.keys.heat.iter().map(|(key, writes)| (*writes, *key)).collect();
        hot.retain(|(_, key)| self.keys.place(*key).is_none());
        hot.sort_unstable_by(|one, other| other.cmp(one));
        for (writes, key) in hot {
            // A place is worth more than a little: whoever leaves takes what is known of a tail along.
            match cold.pop() {
                Some((less, other)) if writes > less.saturating_mul(2) => {
                    self.evict(other);
                    self.admit(key);
                }
                _ => break,
            }
        }
        self.keys.heat.retain(|_, writes| {
            *writes /= 2;
            *writes > 0
        });
    }

    /// Holds a key from now on; false if there is no room.
    pub fn admit(&mut self, key: u64) -> bool {
        // The complement of this one is what an empty cell holds.
        if key == u64::MAX || self.keys.place(key).is_some() {
            return key != u64::MAX;
        }
        let Some(place) = self.make_space(key, MOVES) else { return false };
        self.stand(key, place);
        self.counters.admitted += 1;
        true
    }

    /// Holds a key no longer.
    pub fn evict(&mut self, key: u64) {
        if self.keys.place(key).is_some() {
            self.leave(key);
            self.counters.evicted += 1;
        }
    }

    /// A place for this key that is empty, or made so.
    fn make_space(&mut self, key: u64, moves: u32) -> Option<u32> {
        let cells = cells(key, &self.sizes.ways);
        let places: [u32; WAYS] = core::array::from_fn(|way| self.sizes.place(way, cells[way]));
        if let Some(place) = places.iter().find(|place| !self.keys.by_place.contains_key(place)) {
            return Some(*place);
        }
        if moves == 0 {
            return None;
        }
        for place in places {
            // Those that moved for another key's sake may have left it.
            let Some(other) = self.keys.by_place.get(&place).copied() else { return Some(place) };
            if let Some(elsewhere) = self.make_space(other, moves - 1)
                && self.keys.by_place.get(&place) == Some(&other)
            {
                self.leave(other);
                self.stand(other, elsewhere);
                return Some(place);
            }
        }
        None
    }

    fn stand(&mut self, key: u64, place: u32) {
        let (way, cell) = self.sizes.cell(place);
        self.program.set_cell(self.arrays.keys[way], cell, !key);
        self.keys.places.insert(key, place);
        self.keys.by_place.insert(place, key);
    }

    fn leave(&mut self, key: u64) {
        let Some(place) = self.keys.places.remove(&key) else { return };
        self.keys.by_place.remove(&place);
        let (way, cell) = self.sizes.cell(place);
        self.program.set_cell(self.arrays.keys[way], cell, 0);
        let is_named = self.keys.named.get_mut(place as usize).is_some_and(core::mem::take);
        if !self.rules.holds(Rule::PlacesAreLeftClean) || !is_named {
            return;
        }
        self.program.set_cell(self.arrays.tails, place as usize, 0);
        for cell in 0..self.sizes.slots {
            let named = self.program.cell(self.arrays.outstanding, cell).unwrap_or(0);
            if named as u32 & 0xff_ffff == place {
                self.program.set_cell(self.arrays.outstanding, cell, 0);
            }
        }
        let nowhere = self.nowhere();
        for record in 0..=self.sizes.records {
            if self.program.cell(self.arrays.of_keys, record) == Some(u64::from(place)) {
                self.program.set_cell(self.arrays.of_keys, record, nowhere);
            }
        }
    }

    /// The place of appends whose key has left: beyond the array, where nothing is touched.
    pub(super) fn nowhere(&self) -> u64 {
        self.sizes.places() as u64 + 1
    }
}
