//! Each rule of the engine left out: the runs find it.

use nic::objects::Mode;
use wire::{Rule, Rules, Without};

use crate::objects::runs::{Plan, run};

/// Finds the mutant, or does not.
fn is_found<R: Rules>(rules: R, plan: Plan) -> bool {
    let found = |seed| {
        // What goes wrong may be found by the engine itself, which panics.
        std::panic::catch_unwind(|| run(rules, plan, seed)).map_or(true, |result| result.is_err())
    };
    (0..300).any(found)
}

#[test]
fn every_rule_is_needed() {
    let plans = [
        (Rule::WindowIsGuarded, Plan::new(Mode::Speculative)),
        (Rule::WindowIsBounded, Plan::long(Mode::Speculative)),
        (Rule::VersionComesFirst, Plan::new(Mode::VersionFirst)),
        (Rule::OddIsWritten, Plan::new(Mode::Speculative)),
        (Rule::HeaderIsReadAgain, Plan::new(Mode::VersionFirst)),
        (Rule::VersionStays, Plan::new(Mode::VersionFirst)),
        (Rule::VerdictComesLast, Plan::new(Mode::Speculative)),
        (Rule::LockIsHeld, Plan::new(Mode::Locked)),
        (Rule::LockIsKept, Plan::new(Mode::Locked)),
        (Rule::AttemptsDiffer, Plan::new(Mode::Speculative)),
    ];
    assert_eq!(plans.map(|(rule, _)| rule), Rule::SABRES, "every rule has its mutant");
    let missed: Vec<_> = plans.into_iter().filter(|(rule, plan)| !is_found(Without(*rule), *plan)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
