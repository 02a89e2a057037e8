//! Each rule of one-sided operations is left out once, and something must find the mistake. What must hold: all of them
//! are found; with all rules nothing is.

use crate::refusals;
use crate::workload;

use std::panic::catch_unwind;

use wire::rules::VERBS_NAMES;
use wire::{Faithful, VerbsRules};

/// What finds a mistake of these rules, and what it says; `None` if nothing does.
fn caught<R: VerbsRules>() -> Option<(String, String)> {
    type Check = fn(u64) -> Result<(), String>;
    // A broken machine may also run into one of its own assertions.
    let outcome = |check: Check, seed| {
        catch_unwind(move || check(seed)).unwrap_or_else(|_| Err("an assertion".into())).err()
    };
    let scenarios: [(&str, Check); 2] = [
        ("scenario a_former_key", |_| refusals::a_former_key::<R>()),
        ("scenario a_lost_refusal", |_| refusals::a_lost_refusal::<R>()),
    ];
    for (name, check) in scenarios {
        if let Some(why) = outcome(check, 0) {
            return Some((name.into(), why));
        }
    }
    (0..40).find_map(|seed| {
        let why = outcome(|seed| workload::run::<R>(seed, 80).map(|_| ()), seed)?;
        Some((format!("random run {seed}"), why))
    })
}

#[test]
fn nothing_is_found_where_all_rules_hold() {
    assert_eq!(caught::<Faithful>(), None);
}

#[test]
fn every_mutant_is_caught() {
    let mut names = Vec::new();
    let mut missed = Vec::new();
    macro_rules! run {
        ($name:expr, $mutant:ty) => {
            names.push($name);
            match caught::<$mutant>() {
                Some((by, why)) => println!("{}: {by}: {why}", $name),
                None => missed.push($name),
            }
        };
    }
    wire::for_each_verbs_mutant!(run);
    assert_eq!(names, VERBS_NAMES);
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
