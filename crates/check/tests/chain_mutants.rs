//! Rules of chains, and of a switch that steers, on which stores beside everything else depend: joint runs notice when one is left
//! out. Each has a run that does, and that is right when the rule holds.
//!
//! Here are those that runs of the joint rack catch soon. All of them have scenarios and runs of their own
//! (`crates/chain/tests`, `crates/switch/tests`). `cargo test -p rackmem-check --test chain_mutants -- --nocapture` says what caught each.

use check::joint::{Plan, Rack};
use check::rack::Effort;
use wire::rules::{without_chain, without_steering};
use wire::{ChainRules, Faithful, SteerRules};

/// Seeds that are tried, from the one that is named.
const RUNS: u64 = 60;

fn run<C: ChainRules, S: SteerRules>(seed: u64) -> Result<(), String> {
    let plan = Plan::with_restarts(seed);
    let run =
        Rack::<Faithful, Faithful, Faithful, Faithful, C, S>::run_seed(plan, seed, Effort::steps(20_000));
    run.map(drop).map_err(|why| why.what().lines().next().unwrap_or_default().to_owned())
}

/// The first run that goes wrong, and only without the rule.
fn caught<C: ChainRules, S: SteerRules>(name: &str, from: u64) -> bool {
    let has_stores = |seed: &u64| Plan::with_restarts(*seed).world.chains.stores > 0;
    let found =
        (from..from + RUNS).filter(has_stores).find_map(|seed| Some((seed, run::<C, S>(seed).err()?)));
    let Some((seed, why)) = found else { return false };
    println!("{name}: {why} (seed {seed})");
    assert_eq!(run::<Faithful, Faithful>(seed), Ok(()), "seed {seed} goes wrong whatever is left out");
    true
}

#[test]
fn mutants_of_chains_and_of_steering_are_caught_beside_everything_else() {
    let mut missed = Vec::new();
    macro_rules! chain {
        ($($rule:ident from $seed:literal),* $(,)?) => {$(
            if !caught::<without_chain::$rule, Faithful>(stringify!($rule), $seed) {
                missed.push(stringify!($rule));
            }
        )*};
    }
    macro_rules! steering {
        ($($rule:ident from $seed:literal),* $(,)?) => {$(
            if !caught::<Faithful, without_steering::$rule>(stringify!($rule), $seed) {
                missed.push(stringify!($rule));
            }
        )*};
    }
    chain!(DOUBTS_ARE_SETTLED from 0, CHAINS_ARE_CLOSED from 0, REFUSED_ARE_RENEWED from 0);
    steering!(
        COMPARE_IS_REWRITTEN from 60,
        REPEATS_ARE_ALIKE from 60,
        NUMBERS_ARE_NEW from 0,
        ORIGINAL_IS_REWRITTEN from 0,
        MISMATCHES_RESET from 0,
    );
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
