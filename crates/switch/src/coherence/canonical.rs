//! The switch's state as a value, for checkers that explore all states of a small rack.
//!
//! A [`State`] names the register cells that are not 0, which is all that decides about the future. Numbers of
//! events only count for what they are compared with; [`State::numbers`] and [`State::renumber`] let the checker,
//! who sees all places, make them small.

use alloc::vec::Vec;

use wire::{RequesterId, Rules, Seq};

use super::layout::WAYS;
use super::switch::Switch;
use crate::pipeline::step::ArrayId;

/// What decides about the future of a switch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    /// LAST-UNLOCK, by requester and parity.
    last_unlock: Vec<(u32, Seq)>,
    /// LAST-REQUEST, if conflicting requests wait in a queue.
    last_request: Vec<(u32, Seq)>,
    /// All other cells, by array and index.
    cells: Vec<(u16, u32, u64)>,
}

/// The place of SCOREBOARD among the arrays: behind four for each way.
const SCOREBOARD: usize = 4 * WAYS;

impl<R: Rules> Switch<R> {
    fn all_arrays(&self) -> impl Iterator<Item = ArrayId> + use<R> {
        let arrays = self.arrays;
        let ways = arrays.ways.into_iter().flat_map(|way| [way.tag, way.lock, way.status, way.copyset]);
        ways.chain([arrays.scoreboard])
    }

    fn used(&self, array: ArrayId) -> impl Iterator<Item = (u32, u64)> {
        let cells = self.program.cells(array).enumerate().filter(|(_, value)| *value != 0);
        cells.map(|(index, value)| (u32::try_from(index).expect("the chip has fewer cells"), value))
    }

    /// The switch's state.
    pub fn save(&self) -> State {
        let numbers = |array| self.used(array).map(|(row, seq)| (row, Seq(seq)));
        let last_request = self.arrays.last_request.into_iter().flat_map(numbers);
        let cells = self.all_arrays().enumerate().flat_map(|(at, array)| {
            let at = u16::try_from(at).expect("a program has few arrays");
            self.used(array).map(move |(index, value)| (at, index, value))
        });
        State {
            last_unlock: numbers(self.arrays.last_unlock).collect(),
            last_request: last_request.collect(),
            cells: cells.collect(),
        }
    }

    /// Takes on the state of a switch with the same configuration.
    pub fn load(&mut self, state: &State) {
        let arrays: Vec<ArrayId> = self.all_arrays().collect();
        let numbered = [Some(self.arrays.last_unlock), self.arrays.last_request];
        for array in arrays.iter().copied().chain(numbered.into_iter().flatten()) {
            let used: Vec<u32> = self.used(array).map(|(index, _)| index).collect();
            for index in used {
                self.program.set_cell(array, index as usize, 0);
            }
        }
        for (row, seq) in &state.last_unlock {
            self.program.set_cell(self.arrays.last_unlock, *row as usize, seq.0);
        }
        for (row, seq) in &state.last_request {
            let array = self.arrays.last_request.expect("the state is of a switch with a line");
            self.program.set_cell(array, *row as usize, seq.0);
        }
        for (at, index, value) in &state.cells {
            self.program.set_cell(arrays[usize::from(*at)], *index as usize, *value);
        }
        let tags = self.arrays.ways.map(|way| self.used(way.tag).count());
        self.occupied = tags.into_iter().sum();
    }
}

impl State {
    /// Names every event number in the state: all of them are there to be compared with.
    pub fn numbers(&self, found: &mut dyn FnMut(RequesterId, Seq)) {
        for (row, seq) in self.last_unlock.iter().chain(&self.last_request) {
            found(RequesterId::of(*row as usize / 2), *seq);
        }
    }

    /// Names the requesters of whose events SCOREBOARD has something.
    pub fn scored(&self, found: &mut dyn FnMut(RequesterId)) {
        let cells = self.cells.iter().filter(|(at, _, _)| usize::from(*at) == SCOREBOARD);
        cells.for_each(|(_, row, _)| found(RequesterId::of(*row as usize / 2)));
    }

    /// Replaces every event number. A row with [`Seq::NONE`] is as it was at first.
    pub fn renumber(&mut self, to: &dyn Fn(RequesterId, Seq) -> Seq) {
        for rows in [&mut self.last_unlock, &mut self.last_request] {
            for (row, seq) in &mut *rows {
                *seq = to(RequesterId::of(*row as usize / 2), *seq);
            }
            rows.retain(|(_, seq)| *seq != Seq::NONE);
        }
    }
}
