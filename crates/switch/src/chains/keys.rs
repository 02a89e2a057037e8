//! Which keys are held: their indexes, and who gets one. The control plane's work, beside the pipeline.
//!
//! A key may stand in one cell of each way. If all of them are taken, keys that stand there go to other cells of theirs.
//! The hottest keys get indexes: writes are counted, and from time to time hotter keys replace colder ones.
//!
//! What must always hold: a key has one index; when it leaves, nothing in the pipeline names the index any more.

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
    indexes: Map<u64, u32>,
    by_index: Map<u32, u64>,
    /// Writes of keys since they were last ranked, and half of those before.
    heat: Map<u64, u32>,
    writes: u32,
    /// Indexes that the pipeline may name.
    named: Vec<bool>,
}

impl Keys {
    /// The pipeline names these indexes from now on.
    pub(super) fn name(&mut self, index: u32) {
        let at = index as usize;
        if self.named.len() <= at {
            self.named.resize(at + 1, false);
        }
        self.named[at] = true;
    }

    pub(super) fn count(&self) -> usize {
        self.indexes.len()
    }

    pub(super) fn index(&self, key: u64) -> Option<u32> {
        self.indexes.get(&key).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (u64, u32)> {
        self.indexes.iter().map(|(key, index)| (*key, *index))
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

    /// The hottest keys get the indexes of the coldest ones.
    fn rank(&mut self) {
        self.keys.writes = 0;
        let heat = |keys: &Keys, key: u64| keys.heat.get(&key).copied().unwrap_or(0);
        let mut cold: Vec<(u32, u64)> =
            self.keys.all().map(|(key, _)| (heat(&self.keys, key), key)).collect();
        cold.sort_unstable_by(|one, other| other.cmp(one));
        let mut hot: Vec<(u32, u64)> = self.keys.heat.iter().map(|(key, writes)| (*writes, *key)).collect();
        hot.retain(|(_, key)| self.keys.index(*key).is_none());
        hot.sort_unstable_by(|one, other| other.cmp(one));
        for (writes, key) in hot {
            // An index is worth more than a little: a key that leaves takes along what is known of its tail.
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

    /// Holds a key from now on; false if there is no capacity.
    pub fn admit(&mut self, key: u64) -> bool {
        // The complement of this one is what an empty cell holds.
        if key == u64::MAX || self.keys.index(key).is_some() {
            return key != u64::MAX;
        }
        let Some(index) = self.make_space(key, MOVES) else { return false };
        self.stand(key, index);
        self.counters.admitted += 1;
        true
    }

    /// Holds a key no longer.
    pub fn evict(&mut self, key: u64) {
        if self.keys.index(key).is_some() {
            self.leave(key);
            self.counters.evicted += 1;
        }
    }

    /// An index for this key, whose cell is empty or made so.
    fn make_space(&mut self, key: u64, moves: u32) -> Option<u32> {
        let cells = cells(key, &self.sizes.ways);
        let indexes: [u32; WAYS] = core::array::from_fn(|way| self.sizes.index(way, cells[way]));
        if let Some(index) = indexes.iter().find(|index| !self.keys.by_index.contains_key(index)) {
            return Some(*index);
        }
        if moves == 0 {
            return None;
        }
        for index in indexes {
            // Those that moved for another key's sake may have left it.
            let Some(other) = self.keys.by_index.get(&index).copied() else { return Some(index) };
            if let Some(elsewhere) = self.make_space(other, moves - 1)
                && self.keys.by_index.get(&index) == Some(&other)
            {
                self.leave(other);
                self.stand(other, elsewhere);
                return Some(index);
            }
        }
        None
    }

    fn stand(&mut self, key: u64, index: u32) {
        let (way, cell) = self.sizes.cell(index);
        self.program.set_cell(self.arrays.keys[way], cell, !key);
        self.keys.indexes.insert(key, index);
        self.keys.by_index.insert(index, key);
    }

    fn leave(&mut self, key: u64) {
        let Some(index) = self.keys.indexes.remove(&key) else { return };
        self.keys.by_index.remove(&index);
        let (way, cell) = self.sizes.cell(index);
        self.program.set_cell(self.arrays.keys[way], cell, 0);
        let is_named = self.keys.named.get_mut(index as usize).is_some_and(core::mem::take);
        if !self.rules.holds(Rule::SlotsAreLeftClean) || !is_named {
            return;
        }
        self.program.set_cell(self.arrays.tails, index as usize, 0);
        for cell in 0..self.sizes.slots {
            let named = self.program.cell(self.arrays.outstanding, cell).unwrap_or(0);
            if named as u32 & 0xff_ffff == index {
                self.program.set_cell(self.arrays.outstanding, cell, 0);
            }
        }
        let nowhere = self.nowhere();
        for record in 0..=self.sizes.records {
            if self.program.cell(self.arrays.of_keys, record) == Some(u64::from(index)) {
                self.program.set_cell(self.arrays.of_keys, record, nowhere);
            }
        }
    }

    /// The index of appends whose key has left: beyond the array, where nothing is touched.
    pub(super) fn nowhere(&self) -> u64 {
        self.sizes.indexes() as u64 + 1
    }
}
