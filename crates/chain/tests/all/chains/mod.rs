//! Random runs of clients and a metadata server: histories are linearizable, and memory comes back, although connections break,
//! notices are lost, and clients sleep for longer than slots stay in quarantine, and die. With several copies, memories and metadata
//! servers die, too. Each rule is left out
//! once, and something notices.
//! `RACKMEM_SEED=N` repeats a run, `RACKMEM_RUNS=N` makes so many of each kind.

#[path = "../../../../../tools/check/tests/all/coherence_mutants/document.rs"]
mod document;
mod memories;
mod torn;
mod world;

use check::linearizability::{Limits, Verdict, check_history};
use wire::{AllRules, Rule, Rules, Without};

use crate::table::{ROWS, Runs};
use memories::Care;
use world::World;

const STEPS: u64 = 20_000;

/// What happened in some runs.
#[derive(Default)]
struct Sum {
    operations: usize,
    trips: u64,
    settled: u64,
    deaths: u64,
    no_memory: u64,
    finished: u64,
    dead_memories: u64,
    recopied: u64,
    new_backups: u64,
    dead_servers: u64,
}

/// Copies of each slot, in so many memories.
type Kind = (u8, usize);
const KINDS: [Kind; 4] = [(1, 1), (2, 2), (2, 3), (3, 3)];

/// What went wrong in a run, if anything did.
fn run<R: Rules>(
    (rules, without): (R, Option<Care>),
    seed: u64,
    (copies, memories): Kind,
    sum: &mut Sum,
) -> Result<(), String> {
    let mut world = World::new(rules, seed, 3, copies, memories);
    world.without = without;
    (0..STEPS).for_each(|_| world.step());
    world.is_ending = true;
    let mut left = 200_000;
    while !world.is_quiet() {
        world.step();
        left -= 1;
        if left == 0 {
            return Err("it never ends".into());
        }
    }
    sum.operations += world.history.len();
    sum.trips += world.trips;
    sum.settled += world.settled;
    sum.deaths += world.deaths;
    sum.no_memory += world.no_memory;
    sum.finished += world.finished;
    sum.dead_memories += world.dead_memories;
    sum.recopied += world.recopied;
    sum.new_backups += world.new_backups;
    sum.dead_servers += world.dead_servers;
    match check_history(&world.history, Limits::default()) {
        Verdict::Linearizable { .. } => {}
        other => return Err(format!("{other:?}; words: {:?}", world.words())),
    }
    match world.leaked() {
        0 => Ok(()),
        units => Err(format!("{units} units are lost")),
    }
}

/// A run that panics has found something, too.
fn caught<R: Rules>(rules: R, without: Option<Care>, seed: u64, kind: Kind) -> Result<(), String> {
    let run = std::panic::catch_unwind(|| run((rules, without), seed, kind, &mut Sum::default()));
    run.unwrap_or_else(|why| {
        let text = why.downcast_ref::<String>().cloned();
        Err(text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).into())).unwrap_or_default())
    })
}

/// The seeds of so many runs, or of those that the environment says.
pub(crate) fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("RACKMEM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..number("RACKMEM_RUNS").unwrap_or(count) + 1,
    }
}

#[test]
fn histories_are_linearizable_and_memory_comes_back() {
    for kind in KINDS {
        let mut sum = Sum::default();
        for seed in seeds(50) {
            if let Err(why) = run((AllRules, None), seed, kind, &mut sum) {
                panic!("{kind:?}: {why}\nRACKMEM_SEED={seed} cargo test -p rackmem-chain chains");
            }
        }
        if std::env::var_os("RACKMEM_SEED").is_none() {
            assert!(sum.operations > 5_000 && sum.settled > 20 && sum.deaths > 50, "{}", sum.operations);
            assert_eq!(sum.finished > 0, kind.0 > 1);
            assert_eq!(sum.dead_memories > 25 && sum.recopied > 25, kind.0 > 1);
            assert_eq!(sum.dead_servers > 25 && sum.new_backups > 25, kind.0 > 1);
            let trips = sum.trips as f64 / sum.operations as f64;
            println!(
                "{} copies in {} memories: {} operations, {trips:.2} round trips each, {} without memory, {} settled, {} finished by the \
                 metadata server; {} memories and {} metadata servers died, {} were copied anew",
                kind.0,
                kind.1,
                sum.operations,
                sum.no_memory,
                sum.settled,
                sum.finished,
                sum.dead_memories,
                sum.dead_servers,
                sum.recopied
            );
        }
    }
}

/// What drivers do, and no machine.
#[test]
fn copies_that_are_made_anew_without_care_are_caught() {
    for care in [Care::Stop, Care::Order, Care::Anew, Care::Heard] {
        // With two copies there is only one to copy from.
        let found = (1..600).map(|seed| caught(AllRules, Some(care), seed, (3, 3))).any(|end| end.is_err());
        assert!(found, "nothing catches it: {care:?}");
    }
}

/// This test's scenario.
const TORN: &str = "torn";

#[test]
fn every_mutant_is_caught() {
    let (mut caught_by_runs, mut torn_without) = (Vec::new(), Vec::new());
    for row in ROWS {
        let without = Without(row.rule);
        if row.scenario == TORN && torn::WAITS.into_iter().any(|wait| torn::is_torn(without, wait)) {
            println!("{:?}: an entry is read over two uses of its slot", row.rule);
            torn_without.push(row.rule);
        }
        if let Runs::Native(least, first) = row.runs {
            let kinds = KINDS.into_iter().filter(move |kind| kind.0 >= least);
            let runs = (first..first + 400).flat_map(|seed| kinds.clone().map(move |kind| (seed, kind)));
            let mut ends = runs.map(|(seed, kind)| ((seed, kind), caught(without, None, seed, kind)));
            if let Some(((seed, kind), why)) = ends.find_map(|(run, end)| end.err().map(|why| (run, why))) {
                let why: String = why.chars().take(150).collect();
                println!("{:?}: {kind:?}, seed {seed}: {why}", row.rule);
                caught_by_runs.push(row.rule);
            }
        }
    }
    crate::table::assert_caught(|row| row.scenario == TORN, &torn_without);
    crate::table::assert_caught(|row| matches!(row.runs, Runs::Native(..)), &caught_by_runs);
}

#[test]
fn the_document_says_what_the_table_says() {
    assert!(ROWS.iter().map(|row| row.rule).eq(Rule::CHAINS.iter().copied()), "in the order of the rules");
    assert!(ROWS.iter().all(|row| !row.by().is_empty()), "something catches each");
    let rows = ROWS.iter().map(|row| format!("| `{:?}` | {} | {} |\n", row.rule, row.without, row.by()));
    document::says(2, &format!("{HEAD}{}", rows.collect::<String>()));
}

const HEAD: &str = "\
# The mutants of chains

The same for the rules of [chains](chains.md) (`Rule::CHAINS` in `crates/wire/src/rules.rs`). The table is
`crates/chain/tests/all/mutants/table.rs`; `cargo test -p rackmem-chain mutant -- --nocapture` prints what was found
by random runs.

- *random runs*: three clients and a metadata server, with one copy and with several, whose memories and servers die
  (`chains`);
  *steered*: through a switch that steers (`steered`);
- *every order*: of a few operations on copies (`copies`);
- *scenario*: a run that is too rare to wait for, step by step (in the file, or the function, of that name).

| rule | without it | caught by |
| --- | --- | --- |
";
