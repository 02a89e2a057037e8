//! Each rule of one-sided operations is left out once, and something must find the mistake. What must hold: all of them
//! are found; with all rules nothing is.

use crate::refusals;
use crate::workload;

use std::panic::{AssertUnwindSafe, catch_unwind};

use wire::{AllRules, Rule, Rules, Without};

/// What finds a mistake of these rules, and what it says; `None` if nothing does.
fn caught<R: Rules>(rules: R) -> Option<(String, String)> {
    // A broken machine may also run into one of its own assertions.
    let outcome = |check: &dyn Fn() -> Result<(), String>| {
        catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Err("an assertion".into())).err()
    };
    if let Some(why) = outcome(&|| refusals::a_former_key(rules)) {
        return Some(("scenario a_former_key".into(), why));
    }
    if let Some(why) = outcome(&|| refusals::a_lost_refusal(rules)) {
        return Some(("scenario a_lost_refusal".into(), why));
    }
    (0..40).find_map(|seed| {
        let why = outcome(&|| workload::run(rules, seed, 80).map(|_| ()))?;
        Some((format!("random run {seed}"), why))
    })
}

#[test]
fn nothing_is_found_where_all_rules_hold() {
    assert_eq!(caught(AllRules), None);
}

#[test]
fn every_mutant_is_caught() {
    let mut missed = Vec::new();
    for &rule in Rule::VERBS {
        match caught(Without(rule)) {
            Some((by, why)) => println!("{rule:?}: {by}: {why}"),
            None => missed.push(rule),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
