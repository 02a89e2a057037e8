//! The steering program by itself: its rules one by one, every order of a few appends, and a rewritten packet before an independent
//! dissector. With clients and NICs around it: `crates/chain/tests/all/steered`.

mod bed;
mod bound;
mod bound_orders;
mod capture;
#[path = "../../../../../tools/check/tests/all/coherence_mutants/document.rs"]
mod document;
mod exhaustive;
mod incarnations;
mod reads;
mod rig;
mod scenarios;
mod table;

use wire::{AllRules, Rule, Rules, Without};

use table::ROWS;

/// Does that scenario go wrong?
fn goes_wrong<R: Rules>(rules: R, scenario: &str) -> bool {
    match scenario {
        "address_only" => scenarios::address_only(rules),
        "repeats" => scenarios::repeats(rules),
        "late_copies" => scenarios::late_copies(rules),
        "last_write" => scenarios::last_write(rules),
        "reads" => reads::reads(rules),
        "other_uses" => reads::other_uses(rules),
        "other_incarnations" => reads::other_incarnations(rules),
        "original" => scenarios::original(rules),
        "acks" => scenarios::acks(rules),
        "followers" => scenarios::followers(rules),
        "mismatches" => scenarios::mismatches(rules),
        "unknown_peers" => scenarios::unknown_peers(rules),
        "all_are_bound" => bound::all_are_bound(rules),
        "fillers" => bound::fillers(rules),
        "numbers" => bound::numbers(rules),
        "holes" => bound::holes(rules),
        "anew" => bound::anew(rules),
        "overflows" => bound::overflows(rules),
        "nothing_sent" => bound::nothing_sent(rules),
        "acknowledged" => bound::acknowledged(rules),
        "places" => scenarios::places(rules),
        "expires" => scenarios::expires(rules),
        "introductions" => incarnations::introductions(rules),
        _ => panic!("there is no scenario {scenario}"),
    }
}

#[test]
fn every_rule_has_a_scenario_that_goes_well_with_it_and_wrong_without() {
    assert!(ROWS.iter().map(|row| row.rule).eq(Rule::STEERING.iter().copied()), "in the order of the rules");
    for row in ROWS {
        assert!(!goes_wrong(AllRules, row.scenario), "{row:?}");
        assert!(goes_wrong(Without(row.rule), row.scenario), "{row:?} is not missed");
    }
}

#[test]
fn the_document_says_what_the_table_says() {
    let rows = ROWS.iter().map(|row| format!("| `{:?}` | {} | {} |\n", row.rule, row.without, row.by()));
    document::says(3, &format!("{HEAD}{}", rows.collect::<String>()));
}

const HEAD: &str = "\
# The mutants of steering

The same for the rules of [steering](chains.md#steering) (`Rule::STEERING` in
`crates/wire/src/rules.rs`). The table is `crates/switch/tests/all/chains/table.rs`.

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
    assert!(scenarios::address_only(Without(Rule::CompareIsRewritten)));
    assert!(!scenarios::address_only(AllRules));
}
