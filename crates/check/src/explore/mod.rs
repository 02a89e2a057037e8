//! All states of a small rack: the real machines, every order of events, and a few faults wherever they can happen.
//!
//! | file | holds |
//! | --- | --- |
//! | `scope` | what is explored: nodes, threads, and what may go wrong, how often |
//! | `machines` | the machines, put into a state and given one input |
//! | `world` | a state of the rack, in small numbers |
//! | `shape` | packets under way, as numbers |
//! | `numbers` | what event numbers are compared with, and nothing else of them |
//! | `engine` | from a state to all that can follow it |
//! | `action` | one thing that happens, as a line of a trace |
//! | `states`, `hashing` | the states found so far; tables |
//! | `search` | breadth first over all states, then back from rest |
//! | `coverage` | which rows of the tables were reached |
//!
//! What must always hold: two states that are taken for one behave alike. No hash stands for a state, and what is
//! left out of a state (time, counters, the distance between numbers) decides nothing.

mod action;
mod coverage;
mod engine;
mod hashing;
mod machines;
mod numbers;
mod scope;
mod search;
mod shape;
mod states;
mod world;

pub use coverage::{Coverage, Row};
pub use scope::{SCOPES, Scope, Thread, Turn};
pub use search::{Counterexample, Explored, Progress, Verdict, explore, explore_with_rules};
