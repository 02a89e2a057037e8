//! The steering program by itself: its rules one by one, every order of a few appends, and a rewritten packet before an independent
//! dissector. With clients and NICs around it: `crates/chain/tests/steered`.

mod bed;
mod bound;
mod bound_orders;
mod capture;
mod exhaustive;
mod reads;
mod rig;
mod scenarios;

use wire::rules::STEER_NAMES;
use wire::{Faithful, SteerRules, for_each_steering_mutant};

/// The scenario that is for a rule.
fn goes_wrong<R: SteerRules>(rule: &str) -> bool {
    match rule {
        "COMPARE_IS_REWRITTEN" => scenarios::address_only::<R>(),
        "REPEATS_ARE_ALIKE" => scenarios::repeats::<R>(),
        "NUMBERS_ARE_NEW" => scenarios::numbers::<R>(),
        "LAST_WRITE_COUNTS" => scenarios::last_write::<R>(),
        "READS_TAKE_WHAT_IS_ACKNOWLEDGED" => reads::reads::<R>(),
        "READS_BRING_WHAT_THEY_WERE_SENT_FOR" => reads::other_uses::<R>(),
        "STRANGERS_READ_NOTHING" => reads::other_lives::<R>(),
        "ORIGINAL_IS_REWRITTEN" => scenarios::original::<R>(),
        "ACKS_WAIT" => scenarios::acks::<R>(),
        "FOLLOWERS_FALL" => scenarios::followers::<R>(),
        "MISMATCHES_RESET" => scenarios::mismatches::<R>(),
        "STRANGERS_ARE_DOUBTED" => scenarios::strangers::<R>(),
        "ALL_ARE_BOUND" => bound::all_are_bound::<R>(),
        "FILLERS_ARE_AWAITED" => bound::fillers::<R>(),
        "NUMBERS_ARE_TAKEN_ONCE" => bound::numbers::<R>(),
        "HOLES_ARE_FILLED" => bound::holes::<R>(),
        "BEGUN_ANEW_IS_DOUBTED" => bound::anew::<R>(),
        "OVERFLOWS_ARE_FIRST" => bound::overflows::<R>(),
        "WRITES_FIND_NOTHING_SENT" => bound::nothing_sent::<R>(),
        "WRITES_TAKE_WHAT_IS_ACKNOWLEDGED" => bound::acknowledged::<R>(),
        "PLACES_ARE_LEFT_CLEAN" => scenarios::places::<R>(),
        "KNOWLEDGE_EXPIRES" => scenarios::expires::<R>(),
        _ => panic!("no scenario is for {rule}"),
    }
}

#[test]
fn every_rule_has_a_scenario_that_goes_well_with_it_and_wrong_without() {
    for rule in STEER_NAMES {
        assert!(!goes_wrong::<Faithful>(rule), "{rule}");
    }
    let mut names = Vec::new();
    macro_rules! look {
        ($name:expr, $mutant:ty) => {
            names.push($name);
            assert!(goes_wrong::<$mutant>($name), "{} is not missed", $name);
        };
    }
    for_each_steering_mutant!(look);
    assert_eq!(names, STEER_NAMES);
}

#[test]
fn the_published_prototypes_rewrite_loses_an_update_once_a_slot_was_used_again() {
    assert!(scenarios::address_only::<wire::rules::without_steering::COMPARE_IS_REWRITTEN>());
    assert!(!scenarios::address_only::<Faithful>());
}
