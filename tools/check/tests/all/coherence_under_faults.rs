//! The real machines on a network that does its worst: thousands of short runs, each from its own seed.
//!
//! A failure prints the command that repeats just that run.

use check::coherence::{Plan, Rack, Report};
use check::rack::{Effort, Fault, Tallies};
use node::Counters;
use wire::{AllRules, NodeId};

fn plan(seed: u64) -> Plan {
    Plan::from_seed(seed).with_options(seed)
}

fn run(plan: Plan, seed: u64, steps: usize) -> Report {
    let plan = plan.traced(std::env::var_os("RACKMEM_TRACE").is_some());
    Rack::run_seed(AllRules, plan, seed, Effort::steps(steps)).unwrap_or_else(|why| {
        let replay = format!("RACKMEM_SEED={seed} cargo test -p rackmem-check coherence_under_faults");
        panic!("seed {seed}: {}\n{plan:?}\nreplay: {replay}", why.what())
    })
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
        sum.add(&run(plan(seed), seed, 3000));
    }
    println!("{sum:#?}");
    if seeds().count() > 1 {
        // The runs must have been worth it: everything that can happen has happened.
        assert!(
            sum.seen.protocol.events[1..=11].iter().all(|count| *count > 0),
            "every request: {:?}",
            sum.seen.protocol.events
        );
        assert!(
            sum.seen.protocol.dropped[2..=3].iter().all(|count| *count > 0),
            "late and duplicate packets"
        );
        assert!(sum.seen.protocol.added_to_switch > 0 && sum.seen.protocol.removed_from_switch > 0);
        assert!(sum.seen.peeked > 0 && sum.seen.protocol.peeked > sum.seen.peeked, "some answers are lost");
        assert!(sum.seen.protocol.parked > 0 && sum.seen.protocol.retransmissions > 0 && sum.seen.frees > 0);
        assert!(
            sum.faults[Fault::Lost] > 0
                && sum.faults[Fault::Duplicated] > 0
                && sum.faults[Fault::Delayed] > 0
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let digest = |seed| format!("{:?}", run(plan(seed), seed, 1500));
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7), digest(8), "another seed gives another one");
}

#[test]
fn every_run_recovers_from_restarts_and_deaths() {
    let mut sum = Report::default();
    for seed in seeds() {
        sum.add(&run(Plan::with_restarts(seed).with_options(seed), seed, 6000));
    }
    println!("{sum:#?}");
    if seeds().count() > 1 {
        let stops = sum.faults;
        assert!(
            stops[Fault::SwitchStopped] > 0
                && stops[Fault::NodeDied] > 0
                && stops[Fault::NodeReturned] > 0
                && stops[Fault::ShadowRestarted] > 0,
            "{stops:?}"
        );
        assert!(
            sum.seen.protocol.lost > 0 && sum.seen.lost > 0,
            "blocks are lost, and somebody asks for them"
        );
        assert!(sum.seen.protocol.salvaged > 0, "blocks come back from retained answers");
        assert!(sum.faults[Fault::Corrupted] > 0 && sum.faults[Fault::Unreachable] > 0, "{:?}", sum.faults);
    }
}

/// One run of a small rack after the other, in which a node dies right before this step, for all steps and nodes; and in each of those
/// another one before every so manieth step after that, while what the first one had is being copied.
#[test]
fn a_prefix_survives_a_death_at_every_step_and_a_second_one_after_it() {
    const STEPS: usize = 400;
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    let every = number("RACKMEM_EVERY").unwrap_or(97);
    let (mut sum, mut runs, mut after_copying) = (Report::default(), 0_u64, 0_u64);
    let nodes = || (0..3).map(NodeId);
    for seed in 0..number("RACKMEM_SEEDS").unwrap_or(1) as u64 {
        for (first, dies) in (0..STEPS).flat_map(|step| nodes().map(move |node| (step, node))) {
            let then = (first + 1..STEPS).filter(|second| (second - first).is_multiple_of(every));
            let then =
                then.flat_map(|step| nodes().filter(|node| *node != dies).map(move |node| (step, node)));
            for second in std::iter::once(None).chain(then.map(Some)) {
                let mut plan = Plan::of_three_with_copies(seed);
                plan.rack.deaths = [Some((first, dies)), second];
                let ran = Rack::run_seed(AllRules, plan, seed, Effort::steps(STEPS));
                let ran =
                    ran.unwrap_or_else(|why| panic!("seed {seed}, {:?}: {}", plan.rack.deaths, why.what()));
                runs += 1;
                after_copying += u64::from(second.is_some() && ran.seen.protocol.refilled > 0);
                sum.add(&ran);
            }
        }
    }
    let Counters { inherited, refilled, batches, .. } = sum.seen.protocol;
    println!(
        "{runs} runs, {} deaths, {batches} batches, {inherited} inherited, {refilled} memories copied",
        sum.faults[Fault::NodeDied]
    );
    println!(
        "{} writes synced, {} lost; {after_copying} runs of two deaths in which a memory was copied",
        sum.seen.syncs, sum.seen.died
    );
    assert!(inherited > 0 && refilled > 0 && sum.seen.syncs > 0 && sum.seen.died > 0 && after_copying > 0);
}

/// Half of what is allocated has copies, and nodes die, in every second run while one is about to leave: what survives is a prefix of each one's writes.
#[test]
fn a_prefix_of_what_a_dead_node_wrote_survives() {
    let mut sum = Report::default();
    for seed in seeds() {
        let mut plan = Plan::with_copies(seed);
        plan.rack.drains = seed % 2 == 1;
        sum.add(&run(plan, seed, 6000));
    }
    println!("{sum:#?}");
    if seeds().count() > 1 {
        assert!(sum.faults[Fault::NodeDied] > 0 && sum.faults[Fault::NodeReturned] > 0, "{:?}", sum.faults);
        let Counters { batches, batched, inherited, refilled, .. } = sum.seen.protocol;
        assert!(batched > batches && batches > 0, "{batched} blocks in {batches} batches");
        assert!(inherited > 0, "batches of dead nodes took effect");
        assert!(refilled > 0, "memories were copied again");
        assert!(sum.seen.syncs > 0 && sum.seen.died > 0, "some writes are synced, and some are lost");
    }
}

#[test]
fn a_fault_that_no_longer_happens_is_seen() {
    let mut tallies = Tallies::default();
    for seed in 0..40 {
        let drawn = Plan::from_seed(seed);
        let mut crippled = drawn;
        crippled.rack.faults.delay = 0;
        let report = Rack::run_seed(AllRules, crippled, seed, Effort::steps(1000)).expect("it is right");
        tallies.take(&drawn.rack, &report.faults);
    }
    let of = |fault| tallies.all().find(|(kind, _)| *kind == fault).expect("every kind is there").1;
    assert_eq!(tallies.blind(), [Fault::Delayed]);
    assert_eq!((of(Fault::Delayed).total, of(Fault::Delayed).runs_without), (0, 40));
    assert!(of(Fault::Lost).total > 0 && of(Fault::Lost).drawn_without < of(Fault::Lost).drawn);
    // Nothing stops in these runs, and none has drawn that.
    assert_eq!((of(Fault::NodeDied).runs_without, of(Fault::NodeDied).drawn), (40, 0));
}
