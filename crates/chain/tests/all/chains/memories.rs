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
    /// The store's generation with which it became one of its memories.
    since: u64,
    /// Clients of older generations are not connected any more.
    stopped: u64,
}

/// The memories of a store.
#[derive(Clone)]
pub(crate) struct Memories(Vec<Memory>, u8);

/// What a driver has to take care of when it copies, and what a test leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Care {
    /// Nobody is connected to where it copies from.
    Stop,
    /// It copies from the copy before the dead one, if that lives.
    Order,
    /// Who has learned that the store is another one begins its operation anew.
    Anew,
    /// Who is told of memory of whose node it has not heard yet waits until it has, and does not take it for dead.
    Heard,
}

/// What a memory is to a client that knows the store as it was in some generation.
pub(crate) enum Reach {
    Connected,
    Dead,
    /// It has to learn what the store is made of.
    Outdated,
}

pub(crate) const fn location_of(verb: &Verb) -> Location {
    match *verb {
        Verb::Read(at) | Verb::Write(at, _) | Verb::CompareSwap { at, .. } => at,
    }
}

impl Memories {
    pub(crate) fn new(count: usize, copies: u8) -> Self {
        Self(vec![Memory::default(); count], copies)
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    fn part(&self, unit: u32) -> usize {
        (unit / (UNITS + 1).div_ceil(self.0.len() as u32)) as usize
    }

    fn with(&self, part: usize, replica: u8) -> usize {
        (part + usize::from(replica)) % self.0.len()
    }

    /// Which one has that copy.
    pub(crate) fn of(&self, verb: &Verb, replica: Replica) -> usize {
        self.with(self.part(location_of(verb).unit()), replica.0)
    }

    /// What one is to a client of this generation, which knows of those nodes that had become memories by that one.
    pub(crate) fn reach(&self, of: usize, generation: u64, knows: u64) -> Reach {
        let memory = &self.0[of];
        if memory.is_dead || memory.since > generation.min(knows) {
            Reach::Dead
        } else if memory.stopped > generation {
            Reach::Outdated
        } else {
            Reach::Connected
        }
    }

    /// The first one that is dead.
    pub(crate) fn first_dead(&self) -> Option<usize> {
        self.0.iter().position(|memory| memory.is_dead)
    }

    /// Memory in the place of a dead one gets what that had, from the copy before it that lives, or else from the one behind. Nobody is
    /// connected to any that lives: which those are. (It would not do to end connections with those of which is copied: if these die, who
    /// goes by an older generation finds no other copy that is not dead, or taken for it.)
    pub(crate) fn replace(&mut self, dead: usize, generation: u64, without: Option<Care>) -> Vec<usize> {
        let mut cells = BTreeMap::new();
        for part in 0..self.0.len() {
            let Some(replica) = (0..self.1).find(|replica| self.with(part, *replica) == dead) else {
                continue;
            };
            let lives = |other: Replica| !self.0[self.with(part, other.0)].is_dead;
            let source = match without {
                Some(Care::Order) => (0..self.1).rev().map(Replica).find(|other| lives(*other)),
                _ => Replica(replica).source(self.1, lives),
            };
            let source = self.with(part, source.expect("a copy is left").0);
            let its = self.0[source].cells.iter().filter(|(unit, _)| self.part(**unit) == part);
            cells.extend(its.map(|(unit, cell)| (*unit, *cell)));
        }
        self.0[dead] = Memory { cells, is_dead: false, since: generation, stopped: generation };
        if without == Some(Care::Stop) {
            return Vec::new();
        }
        let live: Vec<usize> = (0..self.0.len()).filter(|of| *of != dead && !self.0[*of].is_dead).collect();
        for of in &live {
            self.0[*of].stopped = generation;
        }
        live
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
