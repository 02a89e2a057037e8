//! Clients, a metadata server and a memory with real NICs, through a switch that steers: histories are linearizable, and memory comes
//! back, whatever the ways lose, duplicate and reorder, and whenever the switch forgets, restarts, or lets keys go. Each rule is left
//! out once, and something notices. `RACKMEM_SEED=N` repeats a run, `RACKMEM_RUNS=N` makes so many.

mod indeterminate;
mod leases;
mod nic;
#[path = "../../../../switch/tests/all/chains/table.rs"]
mod steering_table;
mod world;

use crate::chains::seeds;
use check::linearizability::{Limits, Verdict, check_history};
use switch::chains::Binding;
use wire::{AllRules, Rules, Without};
use world::{Faults, How, Reads, World};

/// How long clients begin operations.
const TIME: u64 = 60_000;

/// What happened in some runs.
#[derive(Default, Debug)]
struct Sum {
    operations: u64,
    trips: [(u64, u64); 2],
    settled: u64,
    renewed: u64,
    failed: u64,
    broken: u64,
    steered: u64,
    reads: u64,
    ahead: u64,
    turned: u64,
    reads_refused: u64,
    moved: u64,
    repeated: u64,
    appended: u64,
    refused: u64,
    indeterminate: u64,
    waited: u64,
    bound: u64,
    written: u64,
    crowded: u64,
    let_in: u64,
    resent: u64,
    most_in_flight: u64,
    finished: u64,
    dead_memories: u64,
}

impl Sum {
    /// Round trips of a write, and of a get.
    fn trips_each(&self) -> [f64; 2] {
        self.trips.map(|(trips, operations)| trips as f64 / operations as f64)
    }
}

/// Where reads go in this run.
const fn reads_of(seed: u64) -> Reads {
    match seed % 5 {
        0 | 1 => Reads::AsAsked,
        2 if seed.is_multiple_of(2) => Reads::Acknowledged,
        _ => Reads::Ahead,
    }
}

/// What went wrong in a run, if anything did.
fn run<R: Rules>(rules: R, seed: u64, faults: Faults, sum: &mut Sum) -> Result<(), String> {
    let top = if seed.is_multiple_of(4) { 1 } else { usize::MAX };
    run_with(rules, seed, How { top, reads: reads_of(seed), ..How::NATIVE }, faults, sum)
}

/// The same where words are bound to queue pairs.
fn run_bound<R: Rules>(rules: R, seed: u64, faults: Faults, sum: &mut Sum) -> Result<(), String> {
    let top = if seed.is_multiple_of(4) { 1 } else { usize::MAX };
    let queue_pairs = 1 + (seed % 7 == 3) as usize;
    // Now and then there is no capacity.
    let (window, atomics) = if seed.is_multiple_of(5) { (4, 2) } else { (64, 16) };
    let binding = Binding { queue_pairs, window, atomics, writes: !seed.is_multiple_of(3) };
    run_with(rules, seed, How { top, reads: reads_of(seed), binding, ..How::NATIVE }, faults, sum)
}

/// The same where each slot has copies.
fn run_copies<R: Rules>(rules: R, seed: u64, faults: Faults, sum: &mut Sum) -> Result<(), String> {
    let top = if seed.is_multiple_of(4) { 1 } else { usize::MAX };
    let copies = 2 + (seed % 3 == 2) as u8;
    run_with(rules, seed, How { top, reads: reads_of(seed), copies, ..How::NATIVE }, faults, sum)
}

fn run_with<R: Rules>(rules: R, seed: u64, how: How, faults: Faults, sum: &mut Sum) -> Result<(), String> {
    let keys = 1 + seed % 3;
    let mut world = World::new(rules, seed, 2 + (seed / 3 % 3) as usize, keys, how, faults);
    while world.now < TIME {
        world.step();
    }
    world.is_ending = true;
    let limit = world.now + 1_000_000;
    // Whatever was is read once more in the end.
    for reading in [false, true] {
        if reading {
            (0..keys).for_each(|key| world.begin_one(0, key, 19));
        }
        while !world.is_quiet() {
            if !world.step() || world.now > limit {
                return Err("it never ends".into());
            }
        }
    }
    let counters = *world.switch.counters();
    sum.operations += world.history.len() as u64;
    for (sum, trips) in sum.trips.iter_mut().zip(world.trips) {
        *sum = (sum.0 + trips.0, sum.1 + trips.1);
    }
    sum.settled += world.settled;
    sum.renewed += world.renewed;
    sum.failed += world.failed;
    sum.broken += world.broken;
    sum.steered += counters.steered;
    sum.reads += counters.reads;
    sum.ahead += counters.reads_ahead;
    sum.turned += counters.reads_turned;
    sum.reads_refused += counters.reads_refused;
    sum.moved += counters.moved;
    sum.repeated += counters.repeated;
    sum.appended += counters.appended;
    sum.refused += counters.refused;
    sum.indeterminate += counters.indeterminate;
    sum.waited += counters.waited;
    sum.bound += counters.bound;
    sum.written += counters.written;
    sum.crowded += counters.crowded;
    sum.let_in += counters.let_in;
    sum.resent += counters.resent;
    sum.finished += world.finished;
    sum.dead_memories += world.dead_memories;
    sum.most_in_flight = sum.most_in_flight.max(counters.most_in_flight);
    match check_history(&world.history, Limits::default()) {
        Verdict::Linearizable { .. } => {}
        other => return Err(format!("{other:?}")),
    }
    match world.leaked() {
        0 => Ok(()),
        units => Err(format!("{units} units are lost")),
    }
}

/// A run that panics has found something, too.
fn what_went_wrong(run: impl FnOnce() -> Result<(), String>) -> Option<String> {
    let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|why| {
        let text = why.downcast_ref::<String>().cloned();
        Err(text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).into())).unwrap_or_default())
    });
    run.err()
}

fn caught<R: Rules>(rules: R, seed: u64) -> Option<String> {
    what_went_wrong(|| match seed % 2 {
        0 => run(rules, seed, Faults::ALL, &mut Sum::default()),
        _ => run_bound(rules, seed, Faults::ALL, &mut Sum::default()),
    })
}

type Run = fn(u64, Faults, &mut Sum) -> Result<(), String>;

fn runs(count: u64, faults: Faults, run: Run) -> Sum {
    let mut sum = Sum::default();
    for seed in seeds(count) {
        if let Some(why) = what_went_wrong(|| run(seed, faults, &mut sum)) {
            panic!("{why}\nRACKMEM_SEED={seed} cargo test -p rackmem-chain steered");
        }
    }
    println!("{sum:?}: {:.2?} round trips each", sum.trips_each());
    sum
}

#[test]
fn without_faults_nobody_waits_and_nothing_is_indeterminate() {
    let sum = runs(6, Faults::default(), |seed, faults, sum| run(AllRules, seed, faults, sum));
    assert!(sum.moved > 100, "{sum:?}");
    assert_eq!((sum.waited, sum.indeterminate, sum.failed), (0, 0, 0), "{sum:?}");
}

/// What happens in some runs in which nothing goes wrong.
fn without_faults(what: &str, how: How) -> Sum {
    let mut sum = Sum::default();
    for seed in 1..7 {
        run_with(AllRules, seed, how, Faults::default(), &mut sum).unwrap();
    }
    println!("{what}: {:.2?} round trips of a write and of a get; {sum:?}", sum.trips_each());
    sum
}

#[test]
fn what_is_steered_takes_fewer_round_trips() {
    let trips = |what: &str, how| without_faults(what, how).trips_each();
    let steered = How { top: usize::MAX, ..How::NATIVE };
    let native = trips("native", How::NATIVE);
    let appends = trips("appends steered", steered);
    let behind = trips("reads, too", How { reads: Reads::Acknowledged, ..steered });
    let both = trips("reads ahead", How { reads: Reads::Ahead, ..steered });
    assert!(appends[0] < 0.7 * native[0], "{native:.2?} {appends:.2?}");
    assert!(behind[1] < 0.8 * appends[1] && behind[1] < native[1], "{native:.2?} {appends:.2?} {behind:.2?}");
    assert!(both[1] < 0.95 * behind[1], "{behind:.2?} {both:.2?}");
}

#[test]
fn histories_are_linearizable_and_memory_comes_back_whatever_happens() {
    let sum = runs(50, Faults::ALL, |seed, faults, sum| run(AllRules, seed, faults, sum));
    if std::env::var_os("RACKMEM_SEED").is_none() {
        for (what, count) in [
            ("steered", sum.steered),
            ("moved", sum.moved),
            ("reads", sum.reads),
            ("reads ahead", sum.ahead),
            ("reads that were sent again", sum.turned),
            ("reads that were refused", sum.reads_refused),
            ("repeated", sum.repeated),
            ("refused", sum.refused),
            ("indeterminate", sum.indeterminate),
            ("waited", sum.waited),
            ("settled", sum.settled),
            ("broken", sum.broken),
        ] {
            assert!(count > 20, "{what}: {sum:?}");
        }
    }
}

#[test]
fn where_words_are_bound_nobody_waits_and_nothing_is_indeterminate_without_faults() {
    let run: Run = |seed, faults, sum| {
        let binding = Binding { writes: true, ..Binding::ONE };
        run_with(
            AllRules,
            seed,
            How { top: usize::MAX, reads: Reads::Ahead, binding, ..How::NATIVE },
            faults,
            sum,
        )
    };
    let sum = runs(6, Faults::default(), run);
    assert!(sum.moved > 100 && sum.written > 100, "{sum:?}");
    assert_eq!((sum.waited, sum.indeterminate, sum.failed, sum.crowded), (0, 0, 0, 0), "{sum:?}");
}

#[test]
fn histories_are_linearizable_where_words_are_bound_whatever_happens() {
    let sum = runs(50, Faults::ALL, |seed, faults, sum| run_bound(AllRules, seed, faults, sum));
    if std::env::var_os("RACKMEM_SEED").is_none() {
        for (what, count) in [
            ("steered", sum.steered),
            ("bound", sum.bound),
            ("written", sum.written),
            ("crowded", sum.crowded),
            ("let in", sum.let_in),
            ("resent", sum.resent),
            ("reads", sum.reads),
            ("reads ahead", sum.ahead),
            ("reads that were sent again", sum.turned),
            ("reads that were refused", sum.reads_refused),
            ("refused", sum.refused),
            ("indeterminate", sum.indeterminate),
            ("settled", sum.settled),
        ] {
            assert!(count > 20, "{what}: {sum:?}");
        }
    }
}

#[test]
fn histories_of_copies_are_linearizable_and_memory_comes_back_whatever_happens() {
    let sum = runs(60, Faults::ALL, |seed, faults, sum| run_copies(AllRules, seed, faults, sum));
    if std::env::var_os("RACKMEM_SEED").is_none() {
        for (what, count) in [
            ("steered", sum.steered),
            ("moved", sum.moved),
            ("repeated", sum.repeated),
            ("refused", sum.refused),
            ("indeterminate", sum.indeterminate),
            ("settled", sum.settled),
            ("finished", sum.finished),
            ("dead memories", sum.dead_memories),
        ] {
            assert!(count > 20, "{what}: {sum:?}");
        }
    }
}

#[test]
fn what_is_steered_and_has_copies_takes_fewer_round_trips() {
    let trips = |what: &str, top| {
        let sum = without_faults(what, How { top, copies: 2, ..How::NATIVE });
        (sum.trips_each()[0], sum.operations, sum.settled)
    };
    let (native, steered) = (trips("native", 0), trips("steered", usize::MAX));
    assert!(steered.0 < 0.8 * native.0 && steered.1 > native.1, "{native:.2?} {steered:.2?}");
    // Of one that the metadata server was quicker with, it says so.
    assert!(steered.2 < steered.1 / 500, "{steered:.2?}");
}

#[test]
fn where_words_are_bound_clients_that_swap_at_once_go_wrong() {
    let how = How { top: usize::MAX, binding: Binding::ONE, ..How::NATIVE };
    assert!(!how.binding.lets_clients_swap_at_once());
    let ends = |swaps_anyway| {
        (1..50).find_map(|seed| {
            let how = How { swaps_anyway, ..how };
            let run = || run_with(AllRules, seed, how, Faults::ALL, &mut Sum::default());
            let why = what_went_wrong(run)?;
            Some((seed, why.chars().take(150).collect::<String>()))
        })
    };
    assert_eq!(ends(false), None);
    println!("{:?}", ends(true).expect("an entry comes into its chain that is not in memory"));
}

#[test]
fn a_switch_that_restarts_again_and_again_costs_performance_only_where_words_are_bound() {
    let sum = runs(20, Faults::STORMS, |seed, faults, sum| run_bound(AllRules, seed, faults, sum));
    assert!(std::env::var_os("RACKMEM_SEED").is_some() || sum.indeterminate > 200, "{sum:?}");
}

#[test]
fn a_switch_that_restarts_again_and_again_costs_performance_only() {
    let sum = runs(20, Faults::STORMS, |seed, faults, sum| run(AllRules, seed, faults, sum));
    assert!(std::env::var_os("RACKMEM_SEED").is_some() || sum.indeterminate > 200, "{sum:?}");
}

#[test]
fn every_mutant_is_caught() {
    let mut caught_by_runs = Vec::new();
    // For the others there are scenarios: `crates/switch/tests/all/chains`.
    let steering = steering_table::ROWS.iter().filter(|row| row.runs).map(|row| row.rule);
    let chains = crate::table::ROWS.iter().filter(|row| row.runs == crate::table::Runs::Steered);
    for rule in steering.chain(chains.map(|row| row.rule)) {
        if let Some((seed, why)) =
            (1..200).find_map(|seed| caught(Without(rule), seed).map(|why| (seed, why)))
        {
            let why: String = why.chars().take(150).collect();
            println!("{rule:?}: seed {seed}: {why}");
            caught_by_runs.push(rule);
        }
    }
    crate::table::assert_caught(|row| row.runs == crate::table::Runs::Steered, &caught_by_runs);
    let mut caught_by_copies = Vec::new();
    let is_copied = |row: &crate::table::Row| matches!(row.runs, crate::table::Runs::SteeredCopies(_));
    for row in crate::table::ROWS {
        let crate::table::Runs::SteeredCopies(first) = row.runs else { continue };
        let run = |seed| run_copies(Without(row.rule), seed, Faults::ALL, &mut Sum::default());
        if let Some((seed, why)) =
            (first..first + 300).find_map(|seed| what_went_wrong(|| run(seed)).map(|why| (seed, why)))
        {
            println!("{:?}: seed {seed}: {}", row.rule, why.chars().take(150).collect::<String>());
            caught_by_copies.push(row.rule);
        }
    }
    crate::table::assert_caught(is_copied, &caught_by_copies);
    for row in steering_table::ROWS.iter().filter(|row| row.runs) {
        let steering_table::Row { rule, without, .. } = row;
        assert!(caught_by_runs.contains(rule), "nothing catches {rule:?} ({without}), but: {}", row.by());
    }
}
