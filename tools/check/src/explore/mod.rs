//! All states of a small rack: the real machines, every order of events, and a few faults wherever they can happen.
//!
//! | file | holds |
//! | --- | --- |
//! | `coherence` | racks of coherent blocks |
//! | `locks` | racks of locks that carry their data |
//! | `joint` | racks of both, in which memory comes and goes |
//! | `engine` | from a state to all that can follow it: of any of these |
//! | `search` | breadth first over all states, then back from rest: of whatever is a `Space` |
//! | `states`, `hashing` | the states found so far; tables |
//! | `world` | a state of the rack, in small numbers |
//!
//! What must always hold: two states that are taken for one behave alike. No hash stands for a state, and what is
//! left out of a state (time, counters, the distance between numbers) decides nothing.

pub mod coherence;
mod engine;
mod hashing;
pub mod joint;
pub mod locks;
mod search;
mod states;
mod world;

pub use search::{Counterexample, Explored, Progress, Protocol, Reached, Verdict};

/// An application thread that may choose among turns: `T`.
#[derive(Clone, Copy, Debug)]
pub struct Thread<T: 'static> {
    /// The node it runs on.
    pub node: u8,
    /// How many turns it takes.
    pub turns: u8,
    /// What it may do in each.
    pub may: &'static [T],
}

const fn thread<T>(node: u8, turns: u8, may: &'static [T]) -> Thread<T> {
    Thread { node, turns, may }
}
