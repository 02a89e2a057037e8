//! Memories whose NICs execute what they are asked, and die. READs and WRITEs take two steps, so that what is read while it is written
//! is torn. What must always hold: a slot's copies are in different memories; what is dead executes nothing.

use std::collections::BTreeMap;

use chain::client::OpId;
use chain::{Outcome, Replica, Verb};
use wire::chains::{EntryHead, Location};

use crate::chains::world::UNITS;

/// An entry in memory: its head's words, and what stands for its value.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cell {
    pub(crate) head: [u64; 3],
    pub(crate) value: u64,
}

/// Something on its way to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) op: OpId,
    pub(crate) verb: Verb,
    pub(crate) value: u64,
    /// The first half was executed: what was read of the head.
    pub(crate) half: Option<[u64; 3]>,
}

#[derive(Clone, Default)]
struct Memory {
    cells: BTreeMap<u32, Cell>,
    is_dead: bool,
}

/// The memories of a store.
#[derive(Clone)]
pub(crate) struct Memories(Vec<Memory>);

pub(crate) const fn location_of(verb: &Verb) -> Location {
    match *verb {
        Verb::Read(at) | Verb::Write(at, _) | Verb::CompareSwap { at, .. } => at,
    }
}

impl Memories {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![Memory::default(); count])
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Which one has that copy.
    pub(crate) fn of(&self, verb: &Verb, replica: Replica) -> usize {
        let each = (UNITS + 1).div_ceil(self.0.len() as u32);
        ((location_of(verb).unit() / each) as usize + usize::from(replica.0)) % self.0.len()
    }

    pub(crate) fn is_dead(&self, of: usize) -> bool {
        self.0[of].is_dead
    }

    pub(crate) fn dead(&self) -> usize {
        self.0.iter().filter(|memory| memory.is_dead).count()
    }

    pub(crate) fn kill(&mut self, of: usize) {
        self.0[of].is_dead = true;
    }

    /// The next half of that; its end, if that was it.
    pub(crate) fn execute(&mut self, of: usize, flight: &mut Flight) -> Option<(Outcome, u64)> {
        let memory = &mut self.0[of];
        assert!(!memory.is_dead, "the dead execute nothing");
        let cell = memory.cells.entry(location_of(&flight.verb).unit()).or_default();
        match (flight.verb, flight.half) {
            (Verb::CompareSwap { expected, new, .. }, _) => {
                let found = cell.head[0];
                if found == expected.to_bits() {
                    cell.head[0] = new.to_bits();
                }
                return Some((Outcome::Swapped(found), 0));
            }
            (Verb::Read(_), Some(head)) => {
                return Some((Outcome::Read(EntryHead::from_words(head)), cell.value));
            }
            (Verb::Read(_), None) => flight.half = Some(cell.head),
            (Verb::Write(..), Some(_)) => {
                cell.value = flight.value;
                return Some((Outcome::Written, 0));
            }
            (Verb::Write(_, head), None) => {
                cell.head = head.to_words();
                flight.half = Some([0; 3]);
            }
        }
        None
    }

    /// All of it, for the metadata server.
    pub(crate) fn at_once(&mut self, verb: Verb, replica: Replica) -> Outcome {
        let of = self.of(&verb, replica);
        assert!(!matches!(verb, Verb::Write(..)), "the metadata server writes no entries");
        if self.is_dead(of) {
            return Outcome::Dead;
        }
        let mut flight = Flight { op: OpId(0), verb, value: 0, half: None };
        let end = self.execute(of, &mut flight).or_else(|| self.execute(of, &mut flight));
        end.expect("it has two halves").0
    }

    /// All words.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|memory| memory.cells.values().map(|cell| cell.head[0]))
    }
}
