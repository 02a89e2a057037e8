//! Locks that carry their data, on a network that does its worst: hundreds of short runs, each from its own seed.
//!
//! A failure prints the command that repeats just that run; `RACKMEM_TRACE=1` before it prints all that happens.

use check::locks::{Effort, Plan, Report, run_seed};
use check::rack::Restarts;
use wire::Faithful;

fn runs(test: &str, plan: fn(u64) -> Plan) -> Report {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("RACKMEM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RACKMEM_SEEDS").unwrap_or(300),
    };
    let trace = std::env::var_os("RACKMEM_TRACE").is_some();
    let mut sum = Report::default();
    for seed in seeds {
        let plan = Plan { trace, ..plan(seed) };
        match run_seed::<Faithful>(plan, seed, Effort::TEST) {
            Ok(report) => sum.add(&report),
            Err(why) => panic!(
                "seed {seed}: {}\n{plan:?}\nreplay: RACKMEM_SEED={seed} cargo test -p rackmem-check --test locks_under_faults {test}",
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
        assert!(sum.faults.lost > 0 && sum.faults.duplicated > 0 && sum.faults.delayed > 0, "{sum:?}");
        assert!(sum.moves > 0 && sum.denied > 0 && sum.evicted > 0 && sum.repeated > 0, "{sum:?}");
        assert!(sum.busy > 0 && sum.cancelled > 0 && sum.entered > 10_000, "{sum:?}");
    }
}

#[test]
fn nothing_has_to_be_sent_again_where_nothing_is_lost() {
    let sum = runs("where_nothing_is_lost", Plan::lossless);
    assert_eq!(sum.repeated, 0);
}

#[test]
fn every_run_is_right_while_places_stop_and_start_again() {
    let sum = runs("while_places_stop", Plan::with_restarts);
    if std::env::var_os("RACKMEM_SEED").is_none() {
        assert!(sum.stops.switch > 0 && sum.stops.nodes > 0 && sum.stops.returns > 0, "{sum:?}");
        assert!(sum.lost > 0 && sum.down > 0 && sum.entered > 10_000, "{sum:?}");
    }
}

#[test]
fn nothing_has_to_be_sent_again_where_places_stop_and_nothing_is_lost() {
    let sum = runs("where_places_stop", Plan::lossless_with_restarts);
    assert_eq!(sum.repeated, 0);
}

#[test]
fn no_lock_is_lost_and_no_thread_fails_where_only_the_switch_stops() {
    let only_the_switch = |seed| {
        let plan = Plan::with_restarts(seed);
        Plan { restarts: Restarts { switch: plan.restarts.switch.max(10), node: 0, shadow: 0 }, ..plan }
    };
    let sum = runs("where_only_the_switch_stops", only_the_switch);
    assert_eq!((sum.lost, sum.down, sum.stops.nodes), (0, 0, 0));
    if std::env::var_os("RACKMEM_SEED").is_none() {
        assert!(sum.stops.switch > 300, "{sum:?}");
    }
}

#[test]
fn locks_end_and_begin_anew_under_faults() {
    let sum = runs("begin_anew_under_faults", |seed| Plan::from_seed(seed).freeing());
    if std::env::var_os("RACKMEM_SEED").is_none() {
        assert!(sum.freed > 1000 && sum.refused > 1000, "{sum:?}");
    }
}

#[test]
fn nothing_has_to_be_sent_again_where_locks_end_and_nothing_is_lost() {
    let sum = runs("where_locks_end", |seed| Plan::lossless(seed).freeing());
    assert_eq!(sum.repeated, 0);
}

#[test]
fn lost_locks_end_too_and_begin_anew_while_places_stop_and_start_again() {
    let sum = runs("lost_locks_end", |seed| Plan::with_restarts(seed).freeing());
    if std::env::var_os("RACKMEM_SEED").is_none() {
        assert!(sum.freed > 1000 && sum.reclaimed > 50 && sum.lost > 0, "{sum:?}");
    }
}
