//! The real machines on a network that does its worst: thousands of short runs, each from its own seed.
//!
//! A failure prints the command that repeats just that run.

use check::rack::{Effort, Failure, Plan, Rack, Report, run_seed};

fn plan(seed: u64) -> Plan {
    let trace = std::env::var_os("RACKMEM_TRACE").is_some();
    Plan { trace, ..Plan::from_seed(seed).with_options(seed) }
}

fn run(seed: u64, steps: usize) -> Report {
    let plan = plan(seed);
    let replay = format!("RACKMEM_SEED={seed} cargo test -p rackmem-check --test protocol_under_faults");
    let outcome = std::panic::catch_unwind(|| Rack::new(plan, seed).run(steps));
    match outcome {
        Ok(Ok(report)) => report,
        Ok(Err(what)) => panic!("seed {seed}: {what}\n{plan:?}\nreplay: {replay}"),
        Err(panic) => {
            eprintln!("seed {seed} panicked\n{plan:?}\nreplay: {replay}");
            std::panic::resume_unwind(panic)
        }
    }
}

fn seeds() -> std::ops::Range<u64> {
    if let Some(seed) = std::env::var("RACKMEM_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return seed..seed + 1;
    }
    let count = std::env::var("RACKMEM_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    0..count
}

#[test]
fn every_run_is_coherent_under_faults_and_completes_without() {
    let mut sum = Report::default();
    for seed in seeds() {
        let report = run(seed, 3000);
        sum.accesses += report.accesses;
        sum.peeked += report.peeked;
        sum.locks += report.locks;
        sum.allocations += report.allocations;
        sum.frees += report.frees;
        sum.refused += report.refused;
        sum.faults.add(&report.faults);
        sum.protocol.add(&report.protocol);
    }
    println!("{sum:#?}");
    if seeds().count() > 1 {
        // The runs must have been worth it: everything that can happen has happened.
        assert!(
            sum.protocol.events[1..=11].iter().all(|count| *count > 0),
            "every request: {:?}",
            sum.protocol.events
        );
        assert!(sum.protocol.dropped[2..=3].iter().all(|count| *count > 0), "late and duplicate packets");
        assert!(sum.protocol.added_to_switch > 0 && sum.protocol.removed_from_switch > 0);
        assert!(sum.peeked > 0 && sum.protocol.peeked > sum.peeked, "some answers are lost");
        assert!(sum.protocol.parked > 0 && sum.protocol.retransmissions > 0 && sum.frees > 0);
        assert!(sum.faults.lost > 0 && sum.faults.duplicated > 0 && sum.faults.delayed > 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let digest = |seed| format!("{:?}", run(seed, 1500));
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7), digest(8), "another seed gives another one");
}

#[test]
fn every_run_recovers_from_restarts_and_deaths() {
    let effort = Effort { steps: 6000, operations: 0, faults: 0 };
    let mut sum = Report::default();
    for seed in seeds() {
        let plan = Plan {
            trace: std::env::var_os("RACKMEM_TRACE").is_some(),
            ..Plan::with_restarts(seed).with_options(seed)
        };
        match run_seed::<wire::Faithful>(plan, seed, effort) {
            Ok(report) => sum.add(&report),
            Err(Failure::Wrong(what) | Failure::Stuck(what) | Failure::Crashed(what)) => panic!(
                "seed {seed}: {what}\n{plan:?}\nreplay: RACKMEM_SEED={seed} RACKMEM_TRACE=1 cargo test \
                 -p rackmem-check --test protocol_under_faults recovers"
            ),
        }
    }
    println!("{sum:#?}");
    if seeds().count() > 1 {
        let stops = sum.stops;
        assert!(stops.switch > 0 && stops.nodes > 0 && stops.returns > 0 && stops.shadow > 0, "{stops:?}");
        assert!(sum.protocol.lost > 0 && sum.lost > 0, "blocks are lost, and somebody asks for them");
        assert!(sum.protocol.salvaged > 0, "blocks come back from retained answers");
        assert!(sum.faults.corrupted > 0 && sum.faults.unreachable > 0, "{:?}", sum.faults);
    }
}
