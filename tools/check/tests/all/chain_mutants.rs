//! Rules of chains, and of a switch that steers, on which stores beside everything else depend: joint runs notice when one is left
//! out. Each has a run that does, and that is right when the rule holds.
//!
//! Here are those that runs of the joint rack catch soon. All of them have scenarios and runs of their own
//! (`crates/chain/tests`, `crates/switch/tests`). `cargo test -p rackmem-check --features deep chain_mutants -- --nocapture` says what caught each.

use check::joint::{Plan, Rack};
use check::rack::Effort;
use wire::rules::{without_chain, without_steering};
use wire::{ChainRules, Faithful, SteerRules};

/// Seeds that are tried: which of them catch a rule changes with everything that a run draws.
const RUNS: u64 = 1000;

fn run<C: ChainRules, S: SteerRules>(seed: u64) -> Result<(), String> {
    let plan = Plan::with_restarts(seed);
    let run =
        Rack::<Faithful, Faithful, Faithful, Faithful, C, S>::run_seed(plan, seed, Effort::steps(20_000));
    run.map(drop).map_err(|why| why.what().lines().next().unwrap_or_default().to_owned())
}

/// The first run that goes wrong, and only without the rule.
fn caught<C: ChainRules, S: SteerRules>(name: &str) -> bool {
    let has_stores = |seed: &u64| Plan::with_restarts(*seed).world.chains.stores > 0;
    let found = (0..RUNS).filter(has_stores).find_map(|seed| Some((seed, run::<C, S>(seed).err()?)));
    let Some((seed, why)) = found else { return false };
    println!("{name}: {why} (seed {seed})");
    assert_eq!(run::<Faithful, Faithful>(seed), Ok(()), "seed {seed} goes wrong whatever is left out");
    true
}

#[test]
fn mutants_of_chains_and_of_steering_are_caught_beside_everything_else() {
    let mut missed = Vec::new();
    macro_rules! chain {
        ($($rule:ident),* $(,)?) => {$(
            if !caught::<without_chain::$rule, Faithful>(stringify!($rule)) {
                missed.push(stringify!($rule));
            }
        )*};
    }
    macro_rules! steering {
        ($($rule:ident),* $(,)?) => {$(
            if !caught::<Faithful, without_steering::$rule>(stringify!($rule)) {
                missed.push(stringify!($rule));
            }
        )*};
    }
    chain!(DOUBTS_ARE_SETTLED, CHAINS_ARE_CLOSED, REFUSED_ARE_RENEWED);
    steering!(
        COMPARE_IS_REWRITTEN,
        REPEATS_ARE_ALIKE,
        NUMBERS_ARE_NEW,
        ORIGINAL_IS_REWRITTEN,
        MISMATCHES_RESET,
    );
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
