//! Looking into the program from outside: tails, appends, and keys.

use alloc::vec::Vec;

use wire::Rules;
use wire::chains::{EntryVersion, Location};
use wire::roce::Psn;

use super::connections::End;
use super::layout::{parse_append, parse_tail, state};
use super::machine::Steering;

/// What became of an append that passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendState {
    /// Nothing yet.
    Pending,
    /// It is in its chain.
    Appended,
    /// It is in none, and never will be under its number.
    Failed,
    /// Nobody knows.
    Lost,
}

/// The record of an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppendView {
    /// What is appended.
    pub at: (Location, EntryVersion),
    /// By which packet.
    pub psn: Psn,
    /// What it was sent to stand behind; none: it was not steered.
    pub behind: Option<(Location, EntryVersion)>,
    /// What became of it.
    pub state: AppendState,
}

impl<R: Rules> Steering<R> {
    /// What the tail of a key will be, as far as that is known.
    pub fn tail(&self, key: u64) -> Option<(Location, EntryVersion)> {
        let index = self.keys.index(key)?;
        let cell = self.program.cell(self.arrays.tails, index as usize)?;
        parse_tail(cell).map(|(at, version, _)| (at, version))
    }

    /// The record of a client's append with this number.
    pub fn append(&self, client: End, psn: Psn) -> Option<AppendView> {
        let (number, _) = self.connections.find(client)?;
        let record = self.record((*number)?, psn) as usize;
        let cell = |array| self.program.cell(array, record).unwrap_or(0);
        if cell(self.arrays.of_keys) == 0 {
            return None;
        }
        let (at, version, recorded) = parse_append(cell(self.arrays.appends))?;
        let state = match cell(self.arrays.states) & state::MASK {
            state::PENDING => AppendState::Pending,
            state::APPENDED => AppendState::Appended,
            state::FAILED => AppendState::Failed,
            _ => AppendState::Lost,
        };
        let behind = parse_tail(cell(self.arrays.behind)).map(|(at, version, _)| (at, version));
        (recorded == psn).then_some(AppendView { at: (at, version), psn, behind, state })
    }

    /// Keys that are held.
    pub fn held(&self) -> usize {
        self.keys.count()
    }

    /// True if this key is held.
    pub fn holds(&self, key: u64) -> bool {
        self.keys.index(key).is_some()
    }

    /// The cells that are not 0, by array and index: for telling states apart. Connections and keys are not in it.
    pub fn cells(&self) -> Vec<[u64; 3]> {
        let arrays = self.program.all_cells().into_iter().enumerate();
        let cells = arrays.flat_map(|(array, cells)| {
            cells.into_iter().enumerate().map(move |(at, cell)| [array as u64, at as u64, cell])
        });
        cells.filter(|[.., cell]| *cell != 0).collect()
    }

    /// What must hold between packets.
    ///
    /// # Panics
    /// If it does not.
    pub fn invariants(&self) {
        for (key, index) in self.keys.all() {
            let (way, cell) = self.sizes.cell(index);
            assert_eq!(self.program.cell(self.arrays.keys[way], cell), Some(!key), "a key's index");
        }
    }
}
