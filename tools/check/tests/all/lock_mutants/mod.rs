//! Every rule of the locks that carry their data is needed, and a checker notices when it is left out.
//!
//! As `tests/mutants` for FlowCC, and a test of its own so that neither has to be compiled for the other. Each rule of
//! `wire::rules::LockRules` stands in `table.rs` with what goes wrong without it, and with what catches its mutant: random runs,
//! or a scenario. The second part of `docs/mutants.md` is written from the same table
//! (`RACKMEM_WRITE=1 cargo test -p rackmem-check --features deep lock_mutants::document`).

mod scenarios;
mod table;

use check::explore::Verdict;
use check::explore::joint::{Scope, explore_with_rules};
use check::locks::{LockRack, Plan};
use check::rack::Effort;
use wire::{Faithful, LockRules};

use crate::mutants::mutant::{Found, first_line};

/// Seeds that are tried, from the one in the table on.
const RUNS: u64 = 300;

/// The first random run, from this seed on, that goes wrong.
fn runs<R: LockRules>(plan: fn(u64) -> Plan, from: u64) -> Found {
    (from..from + RUNS).find_map(|seed| {
        let why = LockRack::<R>::run_seed(plan(seed), seed, Effort::steps(3000)).err()?;
        Some(format!("{} (seed {seed})", first_line(why.what())))
    })
}

/// All states of a small rack in which memory comes and goes.
fn scope<R: LockRules>(name: &str) -> Found {
    let scope = Scope::named(name).unwrap_or_else(|| panic!("there is no scope {name}"));
    let explored = explore_with_rules::<Faithful, R>(scope, 400_000, |_| {});
    let Verdict::Broken(found) = explored.verdict else { return None };
    Some(format!("{} (after {} states)", first_line(&found.what), explored.states))
}

#[test]
fn every_mutant_is_caught() {
    crate::mutants::mutant::assert_caught(table::MUTANTS);
}

#[test]
fn every_rule_has_a_mutant_in_the_table() {
    let in_table: Vec<&str> = table::MUTANTS.iter().map(|mutant| mutant.rule).collect();
    assert_eq!(in_table, wire::rules::LOCK_NAMES);
}

#[test]
fn the_document_says_what_the_table_says() {
    let rows = table::MUTANTS.iter().map(|it| format!("| `{}` | {} | {} |\n", it.rule, it.without, it.by));
    crate::mutants::document::says(1, &format!("{HEAD}{}", rows.collect::<String>()));
}

const HEAD: &str = "\
# The mutants of the locks that carry their data

The same for the rules of the locks (`LockRules` in `crates/wire/src/rules.rs`), from `tools/check/tests/all/lock_mutants`:
`cargo test -p rackmem-check --features deep lock_mutants -- --nocapture`.

- *runs without faults*: one of the first random runs in which nothing is lost and nothing comes twice; packets may pass each
  other;
- *scope NAME*: every state of a small rack in which memory comes and goes (`rackmem-lab check joint --scope NAME`);
- *random runs*, *runs with restarts*, *scenario*: as above.

| rule | without it | caught by |
| --- | --- | --- |
";
