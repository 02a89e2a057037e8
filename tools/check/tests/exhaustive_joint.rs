//! All states of small racks in which memory comes and goes: how many there are, exactly, and that everything holds in
//! each.
//!
//! The counts are asserted because they are the protocol's fingerprint: whoever changes a machine and finds another
//! count here has changed what can happen. `rackmem-lab check joint` explores these scopes, and larger ones. Scopes also
//! catch mutants, here and in `tests/lock_mutants` and `tests/mutants`: that they can fail is not taken on trust.

use check::explore::joint::{Coverage, SCOPES, Scope, explore, explore_with_rules};
use check::explore::{Explored, Reached, Verdict};
use wire::rules::without;
use wire::{Faithful, LockRules, Rules};

fn all_states(name: &str) -> Explored<Coverage> {
    let scope = Scope::named(name).expect("there is such a scope");
    let explored = explore(scope, 1_000_000, |_| {});
    if let Verdict::Broken(found) = &explored.verdict {
        panic!("{name}: {}\n{}", found.what, found.trace.join("\n"));
    }
    assert_eq!(explored.verdict, Verdict::Holds, "{name}");
    explored
}

/// States, steps between them, and states at rest.
#[track_caller]
fn holds(name: &str, states: usize, steps: usize, at_rest: usize) {
    let explored = all_states(name);
    assert_eq!((explored.states, explored.steps, explored.at_rest), (states, steps, at_rest), "{name}");
}

#[test]
fn memory_comes_and_goes() {
    holds("lock", 2075, 5158, 4);
    holds("lock-again", 27_260, 87_758, 9);
    holds("lock-free-outside", 57, 80, 1);
    holds("block", 19_051, 50_760, 48);
    holds("block-in-switch", 160_418, 507_693, 339);
    holds("word", 639, 1354, 1);
}

#[test]
fn packets_are_lost() {
    holds("lock-loss", 17_336, 48_417, 16);
    holds("block-loss", 60_927, 170_377, 58);
}

#[test]
fn a_packet_comes_twice() {
    holds("lock-duplicate", 60_685, 214_232, 8);
    holds("block-duplicate", 135_206, 504_860, 28);
}

#[test]
fn the_switch_restarts() {
    holds("lock-alone-restart", 144_681, 553_767, 46);
    holds("block-alone-restart", 181_795, 649_144, 39);
}

#[test]
fn a_node_dies() {
    holds("lock-free-death", 13_347, 35_338, 35);
    holds("lock-take-death", 25_506, 76_504, 62);
    holds("lock-lost-death", 48_017, 145_312, 85);
    holds("lock-change-death", 1123, 2686, 8);
    holds("block-free-death", 16_724, 51_176, 46);
    holds("block-change-death", 55_026, 152_459, 117);
}

#[test]
fn the_home_dies_and_comes_back() {
    holds("lock-home-death", 2650, 6543, 22);
    holds("lock-home-return", 28_253, 72_076, 49);
    holds("block-home-death", 11_866, 32_855, 103);
    holds("block-home-return", 156_233, 533_365, 71);
}

#[test]
fn threads_get_what_they_want_and_are_refused_for_every_reason() {
    let mut coverage = Coverage::default();
    for name in [
        "lock",
        "lock-free-outside",
        "lock-free-death",
        "lock-take-death",
        "lock-lost-death",
        "lock-change-death",
        "lock-home-death",
        "block",
        "block-home-death",
        "block-free-death",
        "block-change-death",
        "word",
    ] {
        coverage.add(&all_states(name).coverage);
    }
    let missing: Vec<_> = coverage.table().into_iter().filter(|(.., reached)| !reached).collect();
    let missing: Vec<&str> = missing.iter().map(|(what, ..)| what.as_str()).collect();
    // What was never allocated, nobody here frees.
    assert_eq!(missing, ["NotFreed(NotAnAllocation)"], "reached nowhere, or is by now");
}

#[test]
fn two_runs_find_the_same_states_in_the_same_order() {
    let facts = |explored: Explored<Coverage>| {
        (explored.states, explored.steps, explored.depth, explored.local_states)
    };
    assert_eq!(facts(all_states("lock-loss")), facts(all_states("lock-loss")));
}

#[test]
fn scopes_have_names_of_their_own() {
    for (at, scope) in SCOPES.iter().enumerate() {
        assert!(SCOPES[..at].iter().all(|other| other.name != scope.name), "{} stands twice", scope.name);
        assert!(!scope.about.is_empty());
    }
}

/// What is wrong in a scope without a rule.
#[track_caller]
fn without<R: Rules, L: LockRules>(name: &str, what: &str) {
    let scope = Scope::named(name).expect("there is such a scope");
    match explore_with_rules::<R, L>(scope, 200_000, |_| {}).verdict {
        Verdict::Broken(found) => assert!(found.what.contains(what), "{name}: {}", found.what),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_copy_of_a_block_that_is_a_lock_by_now_is_noticed() {
    without::<without::ENDED_COPIES_ARE_DROPPED, Faithful>("block-change-death", "obeys Some(Locked)");
}

#[test]
fn a_copy_of_a_block_of_a_dead_home_is_noticed() {
    without::<without::ORPHANED_COPIES_ARE_DROPPED, Faithful>("block-home-return", "of the block");
}

#[test]
fn a_free_of_the_next_allocation_is_noticed() {
    without::<without::FREES_ARE_FOR_THEIR_ALLOCATOR, Faithful>("block-free-death", "nobody has freed");
}

#[test]
fn memory_whose_life_does_not_end_is_noticed() {
    without::<without::LIFE_ENDS_BEFORE_PURGE, Faithful>("block", "has freed what is still allocated");
}
