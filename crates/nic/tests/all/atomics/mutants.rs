//! Each rule of the engine left out: the runs find it.

use std::panic::catch_unwind;

use wire::AtomicRules;
use wire::rules::ATOMIC_NAMES;

use crate::atomics::events::gets_its_turn;
use crate::atomics::runs::{SMALL, run};

/// Finds the mutant, or does not.
fn is_found<R: AtomicRules>() -> bool {
    // What goes wrong may be found by the engine itself, which panics.
    let is_wrong = |seed| catch_unwind(|| run::<R>(SMALL, seed)).map_or(true, |result| result.is_err());
    let is_starved = || catch_unwind(gets_its_turn::<R>).map_or(true, |gets| !gets);
    is_starved() || (0..200).any(is_wrong)
}

#[test]
fn every_rule_is_needed() {
    let mut found = Vec::new();
    macro_rules! find {
        ($name:expr, $mutant:ty) => {
            found.push(($name, is_found::<$mutant>()));
        };
    }
    wire::for_each_atomic_mutant!(find);
    assert_eq!(found.len(), ATOMIC_NAMES.len());
    let missed: Vec<_> = found.iter().filter(|(_, found)| !found).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
