//! Looking into a lock directory from outside, as a control plane would.

use alloc::vec::Vec;

use sorted::Map;
use wire::{Copyset, GlobalAddr, NodeId, Rules, Term};

use super::directory::Directory;
use super::layout::{SETTLED, WAYS, class, ownership, parse_ownership, route};

/// What the directory says of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryView {
    /// Its term.
    pub term: Term,
    /// Who may write, or will, and keeps the queue.
    pub holder: Option<NodeId>,
    /// A MOVE of this term is between its passes.
    pub moving: bool,
    /// Who was served to read, in this term or, if somebody holds, before it.
    pub sharers: Copyset,
    /// Who was sent to the holder.
    pub waiting: Copyset,
    /// Of those, who wants to write.
    pub writers: Copyset,
}

wire::listed! {
    /// What a pass found, and decided: the rows of the program's last table, and that there is no entry.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Row {
        /// A reader, and nobody holds: the home serves it.
        ReadFree,
        /// A reader that holds, and does not know it: what it missed comes again.
        ReadOwn,
        /// A reader, and somebody holds: it is sent to the queue.
        ReadHeld,
        /// A writer, and nobody holds: the home lends, and copies end.
        WriteFree,
        /// A writer that holds already: what it missed comes again.
        WriteOwn,
        /// A writer, and somebody holds: it is sent to the queue.
        WriteHeld,
        /// A MOVE of which another copy is between its passes: nothing.
        MoveInFlight,
        /// A MOVE of a term that is over: that is said.
        MoveOver,
        /// A MOVE that knows everybody who waits: its second pass follows.
        MoveKnows,
        /// A MOVE that does not: its second pass says who waits.
        MoveMisses,
        /// The second pass of a MOVE that is approved: the lock goes on.
        GoesOn,
        /// The second pass of one that is not: who waits is said.
        Denied,
        /// There is no such entry: the packet goes to the lock's home.
        NotHere,
    }
}

/// What decides about the future of a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DirectoryState {
    entries: Vec<(GlobalAddr, EntryView)>,
    installed: Map<NodeId, u32>,
}

impl<R: Rules> Directory<R> {
    /// The contents of all register arrays, for telling states apart.
    pub fn register_arrays(&self) -> Vec<Vec<u64>> {
        self.program.all_cells()
    }

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
        let ownership = cell(self.arrays.ownerships[way], set);
        let (term, holder) = parse_ownership(ownership);
        EntryView {
            term,
            holder,
            moving: holder.is_some() && ownership & SETTLED == 0,
            sharers: Copyset::from_bits(cell(self.arrays.sharers, at)),
            waiting: Copyset::from_bits(cell(self.arrays.waiters, at)),
            writers: Copyset::from_bits(cell(self.arrays.writers, at)),
        }
    }

    /// What the last pass found. `None` before the first one, and for what no row says.
    pub fn last_row(&self) -> Option<Row> {
        let f = &self.fields;
        if self.passes() == 0 {
            return None;
        }
        if self.phv.get(f.found) == 0 {
            return Some(Row::NotHere);
        }
        let free = self.phv.get(f.ownership) & (SETTLED - 1) == 0;
        Some(match (self.phv.get(f.class), self.phv.get(f.route)) {
            (class::READ, route::SERVE) => Row::ReadFree,
            (class::READ, route::LEND) => Row::ReadOwn,
            (class::READ, route::FORWARD) => Row::ReadHeld,
            (class::WRITE, route::LEND) if free => Row::WriteFree,
            (class::WRITE, route::LEND) => Row::WriteOwn,
            (class::WRITE, route::FORWARD) => Row::WriteHeld,
            (class::MOVE, route::IGNORE) => Row::MoveInFlight,
            (class::MOVE, route::APPROVED) => Row::MoveOver,
            (class::MOVE, route::COMMIT) => Row::MoveKnows,
            (class::MOVE, route::LOOK) => Row::MoveMisses,
            (class::COMMIT, route::PASS_ON) => Row::GoesOn,
            (class::LOOK, route::DENIED) => Row::Denied,
            _ => return None,
        })
    }

    /// The directory's state.
    pub fn save(&self) -> DirectoryState {
        DirectoryState { entries: self.entries(), installed: self.installed.clone() }
    }

    /// Takes on a state.
    pub fn load(&mut self, state: &DirectoryState) {
        let epoch = self.config.epoch;
        self.restart(epoch);
        self.installed.clone_from(&state.installed);
        for (lock, entry) in &state.entries {
            assert!(self.insert(*lock, entry.term, entry.holder, entry.sharers), "there was room before");
            let (set, way) = self.find(*lock).expect("it was inserted");
            self.program.set_cell(self.arrays.waiters, set * WAYS + way, entry.waiting.bits());
            self.program.set_cell(self.arrays.writers, set * WAYS + way, entry.writers.bits());
            if entry.moving {
                let marked = ownership(entry.term, entry.holder) & !SETTLED;
                self.program.set_cell(self.arrays.ownerships[way], set, marked);
            }
        }
    }
}

impl DirectoryState {
    /// The entries.
    pub fn entries(&self) -> &[(GlobalAddr, EntryView)] {
        &self.entries
    }

    /// The same with other terms.
    pub fn renumber(&mut self, mut number: impl FnMut(GlobalAddr, Term) -> Term) {
        for (lock, entry) in &mut self.entries {
            entry.term = number(*lock, entry.term);
        }
    }
}
