//! Every rule of the protocol is needed, and a checker notices when it is left out.
//!
//! Each rule of `wire::rules` stands in `table.rs` with what goes wrong without it, and with what catches its
//! mutant: all states of a scope, random runs, or a scenario of handlers. A few rules are *subsumed*: their mutants
//! have exactly the states of the whole protocol. The first part of `docs/mutants.md` is written from the same table
//! (`RACKMEM_WRITE=1 cargo test -p rackmem-check --features deep mutants::document`). The rules of the locks that carry their data
//! have a test of their own, `tests/lock_mutants`.

pub(crate) mod document;
pub(crate) mod mutant;
mod scenarios;
mod table;

use check::coherence::{Plan, Rack};
use check::explore::flowcc::{Coverage, Scope, explore, explore_with_rules};
use check::explore::{Explored, Verdict, joint};
use check::rack::Effort;
use wire::{Faithful, Rules};

use mutant::{Found, first_line};

/// Where it is looked for at most.
const MOST: usize = 400_000;
const RUNS: u64 = 300;
const STEPS: usize = 3000;

/// The exhaustive search of a scope.
fn scope<N: Rules, S: Rules>(name: &str) -> Found {
    let scope = Scope::named(name).unwrap_or_else(|| panic!("there is no scope {name}"));
    let explored = explore_with_rules::<N, S>(scope, MOST, |_| {});
    let Verdict::Broken(found) = explored.verdict else { return None };
    Some(format!("{} (after {} states)", first_line(&found.what), explored.states))
}

/// The same, where memory comes and goes.
fn joint_scope<N: Rules>(name: &str) -> Found {
    let scope = joint::Scope::named(name).unwrap_or_else(|| panic!("there is no scope {name}"));
    let explored = joint::explore_with_rules::<N, Faithful>(scope, MOST, |_| {});
    let Verdict::Broken(found) = explored.verdict else { return None };
    Some(format!("{} (after {} states)", first_line(&found.what), explored.states))
}

/// The first random run, from this seed on, that goes wrong.
fn runs<R: Rules>(plan: impl Fn(u64) -> Plan, from: u64) -> Found {
    (from..from + RUNS).find_map(|seed| {
        let why = Rack::<R>::run_seed(plan(seed), seed, Effort::steps(STEPS)).err()?;
        Some(format!("{} (seed {seed})", first_line(why.what())))
    })
}

/// A rule that is not needed in a scope: leaving it out changes no state.
fn changes_nothing<N: Rules, S: Rules>(name: &str) -> bool {
    let scope = Scope::named(name).unwrap_or_else(|| panic!("there is no scope {name}"));
    let facts = |explored: Explored<Coverage>| (explored.states, explored.steps, explored.verdict);
    facts(explore_with_rules::<N, S>(scope, MOST, |_| {})) == facts(explore(scope, MOST, |_| {}))
}

#[test]
fn every_mutant_is_caught() {
    mutant::assert_caught(table::MUTANTS);
}

#[test]
fn every_rule_has_a_mutant_in_the_table() {
    let in_table: Vec<&str> = table::MUTANTS.iter().map(|mutant| mutant.rule).collect();
    assert_eq!(in_table, wire::rules::NAMES);
}

#[test]
fn the_document_says_what_the_table_says() {
    let rows = table::MUTANTS.iter().map(|it| format!("| `{}` | {} | {} |\n", it.rule, it.without, it.by));
    document::says(0, &format!("{HEAD}{}", rows.collect::<String>()));
}

const HEAD: &str = "\
# The mutants, and what catches them

Each rule of the protocol (`crates/wire/src/rules.rs`) can be left out, and then some checker must find a mistake.
This table is written by `tools/check/tests/all/mutants`, which also runs all of it:
`cargo test -p rackmem-check --features deep mutants -- --nocapture` prints what was found.

- *scope NAME*: every state of a small rack (`rackmem-lab check flowcc --scope NAME`);
- *joint scope NAME*: the same where memory comes and goes (`rackmem-lab check joint --scope NAME`);
- *random runs*: one of the first runs under loss, duplication, delay and reordering;
- *runs with restarts*: the same, with a switch and nodes that stop and start again;
- *scenario*: a handler given the packets of a rare run;
- *subsumed in NAME*: no checker can find a difference, for there is none: without the rule the scope has the very
  same states. Other rules see to it that what this one is for does not happen.

| rule | without it | caught by |
| --- | --- | --- |
";
