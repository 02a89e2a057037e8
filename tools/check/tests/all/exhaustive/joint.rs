//! Racks of blocks and locks, in which memory comes and goes.

use check::explore::joint::Joint;
use check::explore::{Protocol, Reached};
use wire::{Rule, Rules, Without};

use crate::exhaustive::{Counts, broken, holds, is_as_any};

const SCOPES: &[(&str, Counts)] = &[
    ("lock", [2099, 5208, 4]),
    ("lock-again", [41_105, 140_424, 13]),
    ("lock-free-outside", [62, 89, 1]),
    ("block", [19_051, 50_760, 48]),
    ("block-in-switch", [160_418, 507_693, 339]),
    ("word", [639, 1354, 1]),
    ("lock-loss", [17_764, 49_412, 17]),
    ("block-loss", [60_927, 170_377, 58]),
    ("lock-duplicate", [61_371, 216_433, 8]),
    ("block-duplicate", [135_206, 504_860, 28]),
    ("lock-alone-restart", [139_684, 548_770, 46]),
    ("block-alone-restart", [177_440, 644_789, 39]),
    ("lock-free-death", [13_347, 35_338, 35]),
    ("lock-take-death", [26_792, 80_429, 64]),
    ("lock-lost-death", [49_757, 149_975, 86]),
    ("lock-change-death", [1123, 2686, 8]),
    ("block-free-death", [16_724, 51_176, 46]),
    ("block-change-death", [55_026, 152_459, 117]),
    ("lock-home-death", [2650, 6543, 22]),
    ("lock-home-return", [23_193, 67_016, 49]),
    ("block-home-death", [11_866, 32_855, 103]),
    ("block-home-return", [150_886, 528_018, 71]),
];

#[test]
fn everything_holds_and_threads_get_what_they_want_and_are_refused_for_every_reason() {
    let reached = holds::<Joint>(SCOPES).table().into_iter();
    let missing: Vec<String> = reached.filter(|(.., reached)| !reached).map(|(what, ..)| what).collect();
    // What was never allocated, nobody here frees; and there is no memory with copies.
    assert_eq!(missing, ["Guarded", "Synced", "NotFreed(NotAnAllocation)"], "reached nowhere, or is by now");
}

#[test]
fn its_scopes_are_as_any() {
    is_as_any::<Joint>("lock-loss");
}

#[track_caller]
fn without<R: Rules>(rules: R, name: &str, what: &str) {
    let scope = Joint::scope(name).expect("there is such a scope");
    let found = broken(Joint::explore_with_rules(rules, scope, 200_000, |_| {}));
    assert!(found.what.contains(what), "{name}: {}", found.what);
}

#[test]
fn a_copy_of_a_block_that_is_a_lock_by_now_is_noticed() {
    without(Without(Rule::EndedCopiesAreDropped), "block-change-death", "obeys Some(Locked)");
}

#[test]
fn a_copy_of_a_block_of_a_dead_home_is_noticed() {
    without(Without(Rule::OrphanedCopiesAreDropped), "block-home-return", "of the block");
}

#[test]
fn a_free_of_the_next_allocation_is_noticed() {
    without(Without(Rule::FreesAreForTheirAllocator), "block-free-death", "nobody has freed");
}

#[test]
fn memory_whose_incarnation_does_not_end_is_noticed() {
    without(Without(Rule::IncarnationEndsBeforePurge), "block", "has freed what is still allocated");
}
