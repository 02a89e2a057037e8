//! What is told of a run that fails: as small a run as was found that fails in the same way, and a page where it is stuck.
//!
//! The runs are those of mutants, which are wrong for certain.

use std::time::{Duration, Instant};

use check::locks::{LockRack, Plan};
use check::rack::{Case, Effort, Failure, Verdict};
use wire::{AllRules, Rule, Rules, Without};

/// The first seed of a plan that fails like this.
fn failing<R: Rules>(
    rules: R,
    plan: fn(u64) -> Plan,
    verdict: Verdict,
) -> (Case<check::locks::LockPlan>, Failure) {
    let case = |seed| Case { plan: plan(seed), stream: seed, effort: Effort::steps(3000) };
    let run = |seed| Some((case(seed), LockRack::run_case(rules, &case(seed)).err()?));
    (0..100).filter_map(run).find(|(_, failure)| failure.verdict == verdict).expect("one of them fails")
}

#[test]
fn a_failing_run_is_made_smaller_and_its_numbers_repeat_it() {
    const BROKEN: Without = Without(Rule::WriterAwaitsReaders);
    let (case, failure) = failing(BROKEN, Plan::with_restarts, Verdict::Wrong);
    let until = Instant::now() + Duration::from_secs(5);
    let (small, of_small) = LockRack::shrink(BROKEN, &case, &failure, until);
    let size = |case: &Case<_>| {
        ["nodes", "threads", "locks", "steps"].map(|name| case.get(name).expect("it is a number of a run"))
    };
    let (before, after) = (size(&case), size(&small));
    assert!(after.iter().zip(before).all(|(after, before)| *after <= before), "{before:?} {after:?}");
    assert!(after[3] < 1000 && after[..3] != before[..3], "{before:?} {after:?}");
    assert_eq!(of_small.verdict, Verdict::Wrong);

    // As the command line has it.
    let mut again = case;
    for (name, to) in small.differences(case).split(',').map(|it| it.split_once('=').expect("name=number")) {
        again.set(name, to.parse().expect("a number")).expect("it was that");
    }
    let why = LockRack::run_case(BROKEN, &again).expect_err("it is the same run");
    assert_eq!((why.what, why.steps), (of_small.what, of_small.steps));
    assert!(LockRack::run_case(AllRules, &again).is_ok(), "it is the mutant that is wrong");
}

#[test]
fn a_stuck_run_is_told_in_a_page() {
    const BROKEN: Without = Without(Rule::LockRequestsAreRepeated);
    let (case, failure) = failing(BROKEN, Plan::from_seed, Verdict::Stuck);
    let page = &failure.what;
    assert!(page.lines().count() < 40 && page.lines().all(|line| line.len() < 500), "{page}");
    assert!(page.contains("waits to enter lock") && page.contains("switch: "), "{page}");
    let events = LockRack::last_events(BROKEN, &case, &failure);
    assert!((1..=40).contains(&events.len()), "{events:#?}");
}

#[test]
fn a_number_that_a_run_does_not_have_is_named_with_those_that_it_has() {
    let mut case = Case { plan: Plan::from_seed(0), stream: 0, effort: Effort::FUZZ };
    let why = case.set("nods", 2).expect_err("it is misspelt");
    assert!(why.contains("`nods`") && why.contains("nodes, threads"), "{why}");
    let why = case.set("lose", 1001).expect_err("it is too much");
    assert!(why.contains("from 0 to 1000"), "{why}");
}

#[test]
fn a_run_goes_on_until_it_was_worth_it() {
    let effort = Effort { steps: 10, operations: 200, faults: 20 };
    for seed in 0..10 {
        let locks =
            LockRack::run_seed(AllRules, Plan::with_restarts(seed), seed, effort).expect("it is right");
        assert!(locks.seen.operations() >= 200 && locks.faults.total() >= 20, "{locks:?}");
        let plan = check::coherence::Plan::with_restarts(seed);
        let blocks = check::coherence::Rack::run_seed(AllRules, plan, seed, effort).expect("it is right");
        assert!(blocks.seen.operations() >= 200 && blocks.faults.total() >= 20, "{:?}", blocks.faults);
    }
}
