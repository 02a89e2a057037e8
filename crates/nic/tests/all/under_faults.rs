//! Two nodes on a network that loses, duplicates, delays and reorders: random work of every kind. The seed draws the
//! configuration, too. What must hold is said in `pair/workload.rs`.
//!
//! `RACKMEM_SEED=N` runs one seed, `RACKMEM_SEEDS=N` so many.

use crate::workload;

use wire::AllRules;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

#[test]
fn everything_completes_in_order_and_once() {
    let seeds = match number("RACKMEM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RACKMEM_SEEDS").unwrap_or(120),
    };
    let (mut went_back, mut timed_out, mut duplicates, mut not_ready) = (0, 0, 0, 0);
    let (mut whole, mut torn, mut words) = (0, 0, 0);
    let all = seeds.end - seeds.start > 1;
    for seed in seeds {
        let run = workload::run(AllRules, seed, 120).unwrap_or_else(|why| {
            panic!("{why}\nagain: RACKMEM_SEED={seed} cargo test -p rackmem-nic under_faults")
        });
        whole += run.objects.whole;
        torn += run.objects.torn;
        words += run.words.executed;
        for node in &run.pair.nodes {
            let counters = node.device.counters();
            went_back += counters.went_back;
            timed_out += counters.timed_out;
            duplicates += counters.duplicates;
            not_ready += counters.not_ready;
        }
    }
    // The runs have seen what they are for.
    let seen = [went_back, timed_out, duplicates, not_ready, whole, torn, words];
    println!("went back {went_back}, timed out {timed_out}, duplicates {duplicates}, not ready {not_ready}");
    println!("objects whole {whole}, torn {torn}, operations in batches {words}");
    assert!(!all || seen.iter().all(|&count| count > 100), "{seen:?}");
}

#[test]
fn a_seed_gives_one_run() {
    let counters = |seed| {
        let run = workload::run(AllRules, seed, 60).expect("it is right");
        (run.pair.now, run.pair.nodes.map(|node| node.device.counters().clone()))
    };
    assert_eq!(counters(3), counters(3));
}
