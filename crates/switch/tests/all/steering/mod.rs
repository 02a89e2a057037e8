//! The steering program by itself: its rules one by one, every order of a few appends, and a rewritten packet before an independent
//! dissector. With clients and NICs around it: `crates/chain/tests/steered`.

mod bed;
mod bound;
mod bound_orders;
mod capture;
#[path = "../../../../../tools/check/tests/all/mutants/document.rs"]
mod document;
mod exhaustive;
mod lives;
mod reads;
mod rig;
mod scenarios;
mod table;

use wire::rules::STEER_NAMES;
use wire::{Faithful, SteerRules, for_each_steering_mutant};

use table::{ROWS, Row};

/// Does that scenario go wrong?
fn goes_wrong<R: SteerRules>(scenario: &str) -> bool {
    match scenario {
        "address_only" => scenarios::address_only::<R>(),
        "repeats" => scenarios::repeats::<R>(),
        "late_copies" => scenarios::late_copies::<R>(),
        "last_write" => scenarios::last_write::<R>(),
        "reads" => reads::reads::<R>(),
        "other_uses" => reads::other_uses::<R>(),
        "other_lives" => reads::other_lives::<R>(),
        "original" => scenarios::original::<R>(),
        "acks" => scenarios::acks::<R>(),
        "followers" => scenarios::followers::<R>(),
        "mismatches" => scenarios::mismatches::<R>(),
        "strangers" => scenarios::strangers::<R>(),
        "all_are_bound" => bound::all_are_bound::<R>(),
        "fillers" => bound::fillers::<R>(),
        "numbers" => bound::numbers::<R>(),
        "holes" => bound::holes::<R>(),
        "anew" => bound::anew::<R>(),
        "overflows" => bound::overflows::<R>(),
        "nothing_sent" => bound::nothing_sent::<R>(),
        "acknowledged" => bound::acknowledged::<R>(),
        "places" => scenarios::places::<R>(),
        "expires" => scenarios::expires::<R>(),
        "introductions" => lives::introductions::<R>(),
        _ => panic!("there is no scenario {scenario}"),
    }
}

#[test]
fn every_rule_has_a_scenario_that_goes_well_with_it_and_wrong_without() {
    for row in ROWS {
        assert!(!goes_wrong::<Faithful>(row.scenario), "{row:?}");
    }
    let mut names = Vec::new();
    macro_rules! look {
        ($name:expr, $mutant:ty) => {
            let row = Row::of($name);
            names.push($name);
            assert!(goes_wrong::<$mutant>(row.scenario), "{row:?} is not missed");
        };
    }
    for_each_steering_mutant!(look);
    assert_eq!(names, STEER_NAMES);
}

#[test]
fn the_document_says_what_the_table_says() {
    assert!(ROWS.iter().map(|row| row.rule).eq(STEER_NAMES.iter().copied()), "in the order of the rules");
    let rows = ROWS.iter().map(|row| format!("| `{}` | {} | {} |\n", row.rule, row.without, row.by()));
    document::says(3, &format!("{HEAD}{}", rows.collect::<String>()));
}

const HEAD: &str = "\
# The mutants of steering

The same for the rules of [steering](chains.md#steering) (`SteerRules`). The table is `crates/switch/tests/steering/table.rs`.

- *scenario*: a few packets, step by step, which go well with the rule and wrong without it
  (`cargo test -p rackmem-switch steering`);
- *every order*: of the appends of two and three clients (the same test);
- *random runs*: chain clients with real NICs, over ways that lose, duplicate and reorder
  (`cargo test -p rackmem-chain steered::every_mutant -- --nocapture`).

| rule | without it | caught by |
| --- | --- | --- |
";

#[test]
fn the_published_prototypes_rewrite_loses_an_update_once_a_slot_was_used_again() {
    assert!(scenarios::address_only::<wire::rules::without_steering::COMPARE_IS_REWRITTEN>());
    assert!(!scenarios::address_only::<Faithful>());
}
