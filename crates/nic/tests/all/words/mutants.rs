//! Each rule of the engine left out: the runs find it.

use std::panic::catch_unwind;

use wire::{Rule, Rules, Without};

use crate::words::events::gets_its_turn;
use crate::words::runs::{SMALL, run};

/// Finds the mutant, or does not.
fn is_found<R: Rules>(rules: R) -> bool {
    // What goes wrong may be found by the engine itself, which panics.
    let is_wrong = |seed| catch_unwind(|| run(rules, SMALL, seed)).map_or(true, |result| result.is_err());
    let is_starved = || catch_unwind(|| gets_its_turn(rules)).map_or(true, |gets| !gets);
    is_starved() || (0..200).any(is_wrong)
}

#[test]
fn every_rule_is_needed() {
    let missed: Vec<_> = Rule::ATOMICS.iter().filter(|rule| !is_found(Without(**rule))).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
