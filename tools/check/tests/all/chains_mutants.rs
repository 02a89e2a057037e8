//! Rules of chains, and of a switch that steers, on which stores beside everything else depend: joint runs notice when one is left
//! out. Each has a run that does, and that is right when the rule holds.
//!
//! Here are those that runs of the joint rack catch soon. All of them have scenarios and runs of their own
//! (`crates/chain/tests`, `crates/switch/tests`). `cargo test -p rackmem-check chain_mutants -- --nocapture` says what caught each.

use check::joint::{Plan, Rack};
use check::rack::Effort;
use wire::{AllRules, Rule, Rules, Without};

/// Seeds that are tried: which of them catch a rule changes with everything that a run draws.
const RUNS: u64 = 1000;

fn run<R: Rules>(rules: R, seed: u64) -> Result<(), String> {
    let plan = Plan::with_restarts(seed);
    let run = Rack::run_seed(rules, plan, seed, Effort::steps(20_000));
    run.map(drop).map_err(|why| why.what().lines().next().unwrap_or_default().to_owned())
}

/// The first run from this one on that goes wrong, and only without the rule.
fn is_caught(rule: Rule, first: u64) -> bool {
    let has_stores = |seed: &u64| Plan::with_restarts(*seed).world.chains.stores > 0;
    let found = (first..first + RUNS)
        .filter(has_stores)
        .find_map(|seed| Some((seed, run(Without(rule), seed).err()?)));
    let Some((seed, why)) = found else { return false };
    println!("{rule:?}: {why} (seed {seed})");
    assert_eq!(run(AllRules, seed), Ok(()), "seed {seed} goes wrong whatever is left out");
    true
}

#[test]
fn mutants_of_chains_and_of_steering_are_caught_beside_everything_else() {
    let rules = [
        (Rule::IndeterminateAppendsAreSettled, 40),
        (Rule::ChainsAreClosed, 0),
        (Rule::RefusedAreRenewed, 0),
        (Rule::CompareIsRewritten, 0),
        (Rule::RepeatsAreAlike, 60),
        (Rule::NumbersAreNew, 0),
        (Rule::OriginalIsRewritten, 0),
        (Rule::MismatchesReset, 45),
    ];
    let missed: Vec<_> = rules.into_iter().filter(|(rule, first)| !is_caught(*rule, *first)).collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
