//! Each rule of the engine left out: the runs find it.

use nic::sabre::Mode;
use wire::SabreRules;
use wire::rules::{SABRE_NAMES, without_sabre};

use crate::sabre::runs::{Plan, run};

/// Finds the mutant, or does not.
fn is_found<R: SabreRules>(plan: Plan) -> bool {
    let found = |seed| {
        // What goes wrong may be found by the engine itself, which panics.
        std::panic::catch_unwind(|| run::<R>(plan, seed)).map_or(true, |result| result.is_err())
    };
    (0..300).any(found)
}

#[test]
fn every_rule_is_needed() {
    let found = [
        ("WINDOW_IS_GUARDED", is_found::<without_sabre::WINDOW_IS_GUARDED>(Plan::new(Mode::Speculative))),
        ("WINDOW_IS_BOUNDED", is_found::<without_sabre::WINDOW_IS_BOUNDED>(Plan::long(Mode::Speculative))),
        (
            "VERSION_COMES_FIRST",
            is_found::<without_sabre::VERSION_COMES_FIRST>(Plan::new(Mode::VersionFirst)),
        ),
        ("ODD_IS_WRITTEN", is_found::<without_sabre::ODD_IS_WRITTEN>(Plan::new(Mode::Speculative))),
        (
            "HEADER_IS_READ_AGAIN",
            is_found::<without_sabre::HEADER_IS_READ_AGAIN>(Plan::new(Mode::VersionFirst)),
        ),
        ("VERSION_STAYS", is_found::<without_sabre::VERSION_STAYS>(Plan::new(Mode::VersionFirst))),
        ("VERDICT_COMES_LAST", is_found::<without_sabre::VERDICT_COMES_LAST>(Plan::new(Mode::Speculative))),
        ("LOCK_IS_HELD", is_found::<without_sabre::LOCK_IS_HELD>(Plan::new(Mode::Locked))),
        ("LOCK_IS_KEPT", is_found::<without_sabre::LOCK_IS_KEPT>(Plan::new(Mode::Locked))),
        ("ATTEMPTS_DIFFER", is_found::<without_sabre::ATTEMPTS_DIFFER>(Plan::new(Mode::Speculative))),
    ];
    assert_eq!(found.map(|(name, _)| name), SABRE_NAMES, "every rule has its mutant");
    let missed: Vec<_> = found.iter().filter(|(_, found)| !found).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
