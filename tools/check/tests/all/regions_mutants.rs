//! Every rule of regions and connections is needed, and runs of the joint rack notice when one is left out. So they do when a
//! device does not keep those rules of its own on which words and objects depend.
//!
//! `cargo test -p rackmem-check regions_mutants -- --nocapture` says what caught each.

use check::joint::{Plan, Rack};
use check::rack::Effort;
use wire::{AllRules, Rule, Without};

/// Seeds that are tried.
const RUNS: u64 = 200;
/// The first of those in which incarnations end between an allocation and its use.
const BETWEEN_INCARNATIONS: u64 = 1735;

/// The first run that goes wrong.
fn caught(rules: Without) -> Option<String> {
    (0..RUNS).find_map(|seed| {
        let plan = Plan::with_restarts(seed);
        let why = Rack::run_seed(rules, plan, seed, Effort::steps(20_000)).err()?;
        Some(format!("{} (seed {seed})", why.what().lines().next().unwrap_or_default()))
    })
}

/// Where a home dies and comes back between an allocation and what begins in it: that is rare, so these runs have many
/// stores that begin slowly, and nodes that die often. The first that goes wrong, and only without the rule.
fn caught_between_incarnations() -> Option<String> {
    let rules = Without(Rule::RegionsBeginInTheirIncarnation);
    (BETWEEN_INCARNATIONS..BETWEEN_INCARNATIONS + 2000).find_map(|seed| {
        let mut plan = Plan::with_restarts(seed);
        let chains = &mut plan.world.chains;
        if chains.stores == 0 {
            return None;
        }
        (chains.stores, chains.turns, chains.ends) = (4, 100, 40);
        plan.rack.restarts.node *= 3;
        let effort = || Effort::steps(20_000);
        let why = Rack::run_seed(rules, plan, seed, effort()).err()?;
        let right = Rack::run_seed(AllRules, plan, seed, effort());
        assert!(right.is_ok(), "seed {seed} goes wrong whatever is left out");
        Some(format!("{} (seed {seed})", why.what().lines().next().unwrap_or_default()))
    })
}

#[test]
fn every_mutant_is_caught() {
    let of_devices = [
        Rule::BatchesAreReplayed,
        Rule::SnapshotsAreKept,
        Rule::AnswersHaveSlots,
        Rule::GapsAreRefused,
        Rule::KeysHaveGenerations,
        Rule::PacketsAreRepeated,
        Rule::AnswersAreAwaited,
    ];
    let mut missed = Vec::new();
    for rule in Rule::REGIONS.iter().copied().chain(of_devices) {
        let found = match rule {
            Rule::RegionsBeginInTheirIncarnation => caught_between_incarnations(),
            _ => caught(Without(rule)),
        };
        match found {
            Some(why) => println!("{rule:?}: {why}"),
            None => missed.push(rule),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
