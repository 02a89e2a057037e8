//! Membership while everything goes wrong that can: thousands of short runs, each from its own seed.
//!
//! A failure prints the command that repeats just that run.

use crate::rig;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use rig::{Faults, Random, Rig};
use wire::Nanos;

/// Runs one seed: everything goes wrong for a while, then nothing does, and the rack comes to rest.
fn run(seed: u64) -> ([u32; 11], u32) {
    let mut plan = Random::new(seed ^ 0x5eed);
    let mut rig = Rig::new(seed, 1 + plan.below(5) as u16);
    rig.listed -= plan.below(rig.nodes.into()) as u16;
    let some = |plan: &mut Random, most: u64| if plan.per_mille(300) { 0 } else { plan.below(most) as u32 };
    rig.faults =
        Faults { lose: some(&mut plan, 200), double: some(&mut plan, 200), late: some(&mut plan, 60) };
    rig.start_coordinator();
    rig.fill();
    rig.unleash();
    rig.run_for(Nanos::from_millis(20_000));
    let kinds = rig.chaos.as_ref().map_or([0; 11], |chaos| chaos.kinds);
    rig.calm();
    // Late messages arrive, the dead are found, the fenced start anew.
    rig.run_for(Nanos::from_millis(4_000));
    rig.fill();
    let rests = rig.run_until(Nanos::from_millis(8_000), Rig::is_settled);
    assert!(rests, "without faults the rack comes to rest");
    rig.run_for(Nanos::from_millis(2_000));
    assert!(rig.is_settled(), "and stays there");
    (kinds, rig.seen.dumps)
}

fn seeds() -> std::ops::Range<u64> {
    if let Some(seed) = std::env::var("RACKMEM_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return seed..seed + 1;
    }
    0..std::env::var("RACKMEM_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}

#[test]
fn every_run_keeps_its_promises_under_faults_and_comes_to_rest_without() {
    let (mut kinds, mut dumps) = ([0; 11], 0);
    for seed in seeds() {
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok((happened, begun)) => {
                kinds.iter_mut().zip(happened).for_each(|(sum, one)| *sum += one);
                dumps += begun;
            }
            Err(panic) => {
                eprintln!("replay: RACKMEM_SEED={seed} cargo test -p rackmem-membership under_faults");
                resume_unwind(panic);
            }
        }
    }
    if seeds().count() > 1 {
        assert!(
            kinds.iter().all(|times| *times > 0) && dumps > 0,
            "everything has happened: {kinds:?} {dumps}"
        );
    }
}
