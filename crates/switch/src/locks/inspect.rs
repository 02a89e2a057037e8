//! Looking into a lock directory from outside, as a control plane would.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::{Copyset, GlobalAddr, LockRules, NodeId, Tenure};

use super::directory::Directory;
use super::layout::{SETTLED, WAYS, parse_reign, reign};

/// What the directory says of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryView {
    /// Its reign.
    pub tenure: Tenure,
    /// Who may write, or will, and keeps the queue.
    pub holder: Option<NodeId>,
    /// A MOVE of this reign is between its passes.
    pub moving: bool,
    /// Who was served to read, in this tenure or, if somebody holds, before it.
    pub sharers: Copyset,
    /// Who was sent to the holder.
    pub waiting: Copyset,
    /// Of those, who wants to write.
    pub writers: Copyset,
}

/// What decides about the future of a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct State {
    entries: Vec<(GlobalAddr, EntryView)>,
    installed: BTreeMap<NodeId, u32>,
}

impl<R: LockRules> Directory<R> {
    /// The entry of a lock, if there is one.
    pub fn entry(&self, lock: GlobalAddr) -> Option<EntryView> {
        let (set, way) = self.find(lock)?;
        Some(self.view(set, way))
    }

    /// All entries, by address.
    pub fn entries(&self) -> Vec<(GlobalAddr, EntryView)> {
        let mut entries: Vec<_> = (0..self.sets * WAYS)
            .filter_map(|cell| {
                let (set, way) = (cell / WAYS, cell % WAYS);
                let tag = self.program.cell(self.arrays.tags[way], set).filter(|tag| *tag != 0)?;
                Some((GlobalAddr::from_bits(!tag), self.view(set, way)))
            })
            .collect();
        entries.sort_unstable();
        entries
    }

    fn view(&self, set: usize, way: usize) -> EntryView {
        let cell = |array, index| self.program.cell(array, index).expect("the index is inside the array");
        let at = set * WAYS + way;
        let reign = cell(self.arrays.reigns[way], set);
        let (tenure, holder) = parse_reign(reign);
        EntryView {
            tenure,
            holder,
            moving: holder.is_some() && reign & SETTLED == 0,
            sharers: Copyset::from_bits(cell(self.arrays.sharers, at)),
            waiting: Copyset::from_bits(cell(self.arrays.waiters, at)),
            writers: Copyset::from_bits(cell(self.arrays.writers, at)),
        }
    }

    /// The directory's state.
    pub fn save(&self) -> State {
        State { entries: self.entries(), installed: self.installed.clone() }
    }

    /// Takes on a state.
    pub fn load(&mut self, state: &State) {
        let epoch = self.config.epoch;
        self.restart(epoch);
        self.installed.clone_from(&state.installed);
        for (lock, entry) in &state.entries {
            assert!(self.insert(*lock, entry.tenure, entry.holder, entry.sharers), "there was room before");
            let (set, way) = self.find(*lock).expect("it was inserted");
            self.program.set_cell(self.arrays.waiters, set * WAYS + way, entry.waiting.bits());
            self.program.set_cell(self.arrays.writers, set * WAYS + way, entry.writers.bits());
            if entry.moving {
                let marked = reign(entry.tenure, entry.holder) & !SETTLED;
                self.program.set_cell(self.arrays.reigns[way], set, marked);
            }
        }
    }
}

impl State {
    /// The entries.
    pub fn entries(&self) -> &[(GlobalAddr, EntryView)] {
        &self.entries
    }

    /// The same with other tenures.
    pub fn renumber(&mut self, mut number: impl FnMut(GlobalAddr, Tenure) -> Tenure) {
        for (lock, entry) in &mut self.entries {
            entry.tenure = number(*lock, entry.tenure);
        }
    }
}
