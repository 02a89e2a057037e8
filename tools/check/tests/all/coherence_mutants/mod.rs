//! Every rule of the protocol is needed, and a checker notices when it is left out.
//!
//! Each rule of `Rule::COHERENCE` stands in `table.rs` with what goes wrong without it, and with what catches its
//! mutant: all states of a scope, random runs, or a scenario of handlers. A few rules are *subsumed*: their mutants
//! have exactly the states of the whole protocol. The first part of `docs/mutants.md` is written from the same table
//! (`RACKMEM_WRITE=1 cargo test -p rackmem-check mutants::document`). The rules of the locks that carry their data
//! have a test of their own, `tests/lock_mutants`.

mod copies;
pub(crate) mod document;
pub(crate) mod mutant;
mod scenarios;
mod table;

use wire::Rule;

use mutant::{assert_caught, rows};

#[test]
fn every_mutant_is_caught() {
    assert_caught(table::MUTANTS);
}

#[test]
fn every_mutant_of_copies_is_caught() {
    assert_caught(copies::MUTANTS);
}

#[test]
fn every_rule_has_a_mutant_in_the_table() {
    assert!(table::MUTANTS.iter().map(|mutant| mutant.rule).eq(Rule::COHERENCE.iter().copied()));
    assert!(copies::MUTANTS.iter().map(|mutant| mutant.rule).eq(Rule::COPIES.iter().copied()));
}

#[test]
fn the_document_says_what_the_table_says() {
    document::says(0, &format!("{HEAD}{}{}", rows(table::MUTANTS), rows(copies::MUTANTS)));
}

const HEAD: &str = "\
# The mutants, and what catches them

Each rule of the protocol (`crates/wire/src/rules.rs`) can be left out, and then some checker must find a mistake.
This table is written by `tools/check/tests/all/coherence_mutants`, which also runs all of it:
`cargo test -p rackmem-check mutants -- --nocapture` prints what was found.

- *scope NAME*: every state of a small rack (`rackmem-lab check coherence --scope NAME`);
- *joint scope NAME*: the same where memory comes and goes (`rackmem-lab check joint --scope NAME`);
- *random runs*: one of the first runs under loss, duplication, delay and reordering;
- *runs with restarts*: the same, with a switch and nodes that stop and start again;
- *runs with copies*: the same, where half of the memory has copies on other nodes;
- *scenario*: a handler given the packets of a rare run;
- *subsumed in NAME*: no checker can find a difference, for there is none: without the rule the scope has the very
  same states. Other rules see to it that what this one is for does not happen.

| rule | without it | caught by |
| --- | --- | --- |
";
