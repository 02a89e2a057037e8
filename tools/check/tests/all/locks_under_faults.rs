//! Locks that carry their data, on a network that does its worst: hundreds of short runs, each from its own seed.
//!
//! A failure prints the command that repeats just that run; `RACKMEM_TRACE=1` before it prints all that happens.

use check::locks::{LockRack, Plan, Report};
use check::rack::{Effort, Fault, Restarts};
use wire::AllRules;

fn runs(test: &str, plan: fn(u64) -> Plan) -> Report {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("RACKMEM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RACKMEM_SEEDS").unwrap_or(300),
    };
    let trace = std::env::var_os("RACKMEM_TRACE").is_some();
    let mut sum = Report::default();
    for seed in seeds {
        let plan = plan(seed).traced(trace);
        match LockRack::run_seed(AllRules, plan, seed, Effort::steps(3000)) {
            Ok(report) => sum.add(&report),
            Err(why) => panic!(
                "seed {seed}: {}\n{plan:?}\nreplay: RACKMEM_SEED={seed} cargo test -p rackmem-check locks_under_faults::{test}",
                why.what()
            ),
        }
    }
    println!("{sum:#?}");
    sum
}

#[test]
fn every_run_is_right_under_faults_and_comes_to_rest_without() {
    let sum = runs("under_faults", Plan::from_seed);
    if std::env::var_os("RACKMEM_SEED").is_none() {
        // The runs must have been worth it.
        assert!(
            sum.faults[Fault::Lost] > 0
                && sum.faults[Fault::Duplicated] > 0
                && sum.faults[Fault::Delayed] > 0,
            "{sum:?}"
        );
        assert!(
            sum.seen.moves > 0 && sum.seen.denied > 0 && sum.seen.evicted > 0 && sum.seen.repeated > 0,
            "{sum:?}"
        );
        assert!(sum.seen.busy > 0 && sum.seen.cancelled > 0 && sum.seen.entered > 10_000, "{sum:?}");
    }
}

#[test]
fn nothing_has_to_be_sent_again_where_nothing_is_lost() {
    let sum = runs("where_nothing_is_lost", Plan::lossless);
    assert_eq!(sum.seen.repeated, 0);
}

#[test]
fn every_run_is_right_while_places_stop_and_start_again() {
    let sum = runs("while_places_stop", Plan::with_restarts);
    if std::env::var_os("RACKMEM_SEED").is_none() {
        assert!(
            sum.faults[Fault::SwitchStopped] > 0
                && sum.faults[Fault::NodeDied] > 0
                && sum.faults[Fault::NodeReturned] > 0,
            "{sum:?}"
        );
        assert!(sum.faults[Fault::Corrupted] > 0 && sum.faults[Fault::Unreachable] > 0, "{:?}", sum.faults);
        assert!(sum.seen.lost > 0 && sum.seen.down > 0 && sum.seen.entered > 10_000, "{sum:?}");
    }
}

#[test]
fn nothing_has_to_be_sent_again_where_places_stop_and_nothing_is_lost() {
    let sum = runs("where_places_stop", Plan::lossless_with_restarts);
    assert_eq!(sum.seen.repeated, 0);
}

#[test]
fn no_lock_is_lost_and_no_thread_fails_where_only_the_switch_stops() {
    let only_the_switch = |seed| {
        let mut plan = Plan::with_restarts(seed);
        plan.rack.restarts = Restarts { switch: plan.rack.restarts.switch.max(10), node: 0, shadow: 0 };
        plan
    };
    let sum = runs("where_only_the_switch_stops", only_the_switch);
    assert_eq!((sum.seen.lost, sum.seen.down, sum.faults[Fault::NodeDied]), (0, 0, 0));
    if std::env::var_os("RACKMEM_SEED").is_none() {
        assert!(sum.faults[Fault::SwitchStopped] > 300, "{sum:?}");
    }
}

#[test]
fn locks_end_and_begin_anew_under_faults() {
    let sum = runs("begin_anew_under_faults", |seed| Plan::from_seed(seed).freeing());
    if std::env::var_os("RACKMEM_SEED").is_none() {
        assert!(sum.seen.freed > 1000 && sum.seen.refused > 1000, "{sum:?}");
    }
}

#[test]
fn nothing_has_to_be_sent_again_where_locks_end_and_nothing_is_lost() {
    let sum = runs("where_locks_end", |seed| Plan::lossless(seed).freeing());
    assert_eq!(sum.seen.repeated, 0);
}

#[test]
fn lost_locks_end_too_and_begin_anew_while_places_stop_and_start_again() {
    let sum = runs("lost_locks_end", |seed| Plan::with_restarts(seed).freeing());
    if std::env::var_os("RACKMEM_SEED").is_none() {
        assert!(sum.seen.freed > 1000 && sum.seen.reclaimed > 50 && sum.seen.lost > 0, "{sum:?}");
    }
}
