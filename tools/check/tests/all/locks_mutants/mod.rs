//! Every rule of the locks that carry their data is needed, and a checker notices when it is left out.
//!
//! As `tests/mutants` for FlowCC. Each rule of
//! `Rule::LOCKS` stands in `table.rs` with what goes wrong without it, and with what catches its mutant: random runs,
//! or a scenario. The second part of `docs/mutants.md` is written from the same table
//! (`RACKMEM_WRITE=1 cargo test -p rackmem-check lock_mutants::document`).

mod scenarios;
mod table;

use wire::Rule;

use crate::coherence_mutants::document;
use crate::coherence_mutants::mutant::{assert_caught, rows};

#[test]
fn every_mutant_is_caught() {
    assert_caught(table::MUTANTS);
}

#[test]
fn every_rule_has_a_mutant_in_the_table() {
    assert!(table::MUTANTS.iter().map(|mutant| mutant.rule).eq(Rule::LOCKS.iter().copied()));
}

#[test]
fn the_document_says_what_the_table_says() {
    document::says(1, &format!("{HEAD}{}", rows(table::MUTANTS)));
}

const HEAD: &str = "\
# The mutants of the locks that carry their data

The same for the rules of the locks (`Rule::LOCKS` in `crates/wire/src/rules.rs`), from
`tools/check/tests/all/locks_mutants`:
`cargo test -p rackmem-check lock_mutants -- --nocapture`.

- *runs without faults*: one of the first random runs in which nothing is lost and nothing comes twice; packets may
  pass each other;
- *joint scope NAME*, *random runs*, *runs with restarts*, *scenario*: as above.

| rule | without it | caught by |
| --- | --- | --- |
";
