//! Every rule of regions and connections is needed, and runs of the joint rack notice when one is left out. So they do when a
//! device does not keep those rules of its own on which words and objects depend.
//!
//! `cargo test -p rackmem-check --features deep one_sided_mutants -- --nocapture` says what caught each.

use check::joint::{Plan, Rack};
use check::rack::Effort;
use wire::rules::{REGION_NAMES, without_region, without_verbs};
use wire::{Faithful, RegionRules, VerbsRules};

/// Seeds that are tried.
const RUNS: u64 = 200;
/// The first of those in which lives end between an allocation and its use.
const BETWEEN_LIVES: u64 = 1500;

/// The first run that goes wrong.
fn caught<V: VerbsRules, G: RegionRules>() -> Option<String> {
    (0..RUNS).find_map(|seed| {
        let plan = Plan::with_restarts(seed);
        let why = Rack::<Faithful, Faithful, V, G>::run_seed(plan, seed, Effort::steps(20_000)).err()?;
        Some(format!("{} (seed {seed})", why.what().lines().next().unwrap_or_default()))
    })
}

/// Where a home dies and comes back between an allocation and what begins in it: that is rare, so these runs have many
/// stores that begin slowly, and nodes that die often. The first that goes wrong, and only without the rule.
fn caught_between_lives() -> Option<String> {
    type Without = without_region::REGIONS_BEGIN_IN_THEIR_LIFE;
    (BETWEEN_LIVES..BETWEEN_LIVES + 2000).find_map(|seed| {
        let mut plan = Plan::with_restarts(seed);
        let chains = &mut plan.world.chains;
        if chains.stores == 0 {
            return None;
        }
        (chains.stores, chains.turns, chains.ends) = (4, 100, 40);
        plan.rack.restarts.node *= 3;
        let effort = || Effort::steps(20_000);
        let why = Rack::<Faithful, Faithful, Faithful, Without>::run_seed(plan, seed, effort()).err()?;
        let right = Rack::<Faithful>::run_seed(plan, seed, effort());
        assert!(right.is_ok(), "seed {seed} goes wrong whatever is left out");
        Some(format!("{} (seed {seed})", why.what().lines().next().unwrap_or_default()))
    })
}

#[test]
fn every_mutant_is_caught() {
    let (mut names, mut missed) = (Vec::new(), Vec::new());
    let mut judge = |name, found: Option<String>| match found {
        Some(why) => println!("{name}: {why}"),
        None => missed.push(name),
    };
    macro_rules! run {
        ($name:expr, $mutant:ty) => {
            names.push($name);
            let found = match $name {
                "REGIONS_BEGIN_IN_THEIR_LIFE" => caught_between_lives(),
                _ => caught::<Faithful, $mutant>(),
            };
            judge($name, found);
        };
    }
    wire::for_each_region_mutant!(run);
    assert_eq!(names, REGION_NAMES);
    judge("BATCHES_ARE_REPLAYED", caught::<without_verbs::BATCHES_ARE_REPLAYED, Faithful>());
    judge("SNAPSHOTS_ARE_KEPT", caught::<without_verbs::SNAPSHOTS_ARE_KEPT, Faithful>());
    judge("ANSWERS_HAVE_SLOTS", caught::<without_verbs::ANSWERS_HAVE_SLOTS, Faithful>());
    judge("GAPS_ARE_REFUSED", caught::<without_verbs::GAPS_ARE_REFUSED, Faithful>());
    judge("KEYS_HAVE_GENERATIONS", caught::<without_verbs::KEYS_HAVE_GENERATIONS, Faithful>());
    judge("PACKETS_ARE_REPEATED", caught::<without_verbs::PACKETS_ARE_REPEATED, Faithful>());
    judge("ANSWERS_ARE_AWAITED", caught::<without_verbs::ANSWERS_ARE_AWAITED, Faithful>());
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
