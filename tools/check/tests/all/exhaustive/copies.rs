//! Racks with memory that outlives its node, in which nodes die at every step.

use check::explore::Protocol;
use check::explore::joint::Joint;
use wire::{Rule, Without};

use crate::exhaustive::{Counts, broken, holds};

/// The small ones; the deep step of `.ci/run` has all of them.
const SCOPES: &[(&str, Counts)] = &[
    ("copies", [106_127, 349_761, 158]),
    ("copies-alone-again", [24_515, 87_530, 109]),
    ("copies-backup-again", [68_812, 245_922, 459]),
    ("copies-allocate-again", [29_990, 103_343, 187]),
];

#[test]
fn what_is_promised_of_memory_with_copies_holds_whoever_dies_whenever() {
    holds::<Joint>(SCOPES);
}

/// A rule, a scope that has a counterexample without it, after how many states it is found, and what it says.
type Caught = (Rule, &'static str, usize, &'static str);

const LOST: &str = "was promised";

const CAUGHT: &[Caught] = &[
    (Rule::CommitBeforeGiving, "copies-backup", 19_378, LOST),
    (Rule::BatchesProtect, "copies-alone", 73, "is cached as Modified"),
    (Rule::CommitBeforeRelease, "copies-guard", 21_738, LOST),
    (Rule::BatchesAreWhole, "copies-two-again", 24_479, "is lost"),
    (Rule::FateIsAsked, "copies-alone", 1211, "the copies of 3:0x0 differ"),
    (Rule::HomeAwaitsBatches, "copies", 21_047, LOST),
    (Rule::CallsAreReplicated, "copies-allocate", 1003, "is refused the block: Unallocated"),
    (Rule::FreshIsKept, "copies-backup-again", 43_780, LOST),
    (Rule::RefillAwaitsBatches, "copies-backup-again", 26_789, LOST),
];

#[test]
fn each_rule_of_copies_is_missed_by_some_order_of_messages() {
    let mut wrong = Vec::new();
    for (rule, name, states, what) in CAUGHT {
        let scope = Joint::scope(name).expect("there is such a scope");
        let explored = Joint::explore_with_rules(Without(*rule), scope, 400_000, |_| {});
        let after = explored.states;
        let found = broken(explored);
        if after != *states || !found.what.contains(what) {
            wrong.push(format!("{rule:?}: after {after} states of {name}: {}", found.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What others could do, they did before: a writer that is not kept from writing delays a batch, and no order of messages shows
/// more of it.
#[test]
fn rules_that_no_order_of_messages_misses_are_these() {
    let missed = Rule::COPIES.iter().filter(|rule| CAUGHT.iter().all(|(caught, ..)| caught != *rule));
    assert!(missed.eq(&[Rule::BatchesAreOneMoment, Rule::CommitBeforeFree]));
}
