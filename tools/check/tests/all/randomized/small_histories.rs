//! Thousands of small histories, linearizable or not, against the brute-force checker.

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history_from};

use crate::randomized::brute_force::is_linearizable;
use crate::randomized::for_seeds;
use crate::randomized::simulated::{Shape, simulate};
use random::Dice;

/// Few clients on one key, everything else left to chance.
fn small_shape(rng: &mut Dice) -> Shape {
    // Without deletes, without updates and with unique digests, other rules of the search apply.
    let mut share = |percent| if rng.percent(60) { rng.below(percent) } else { 0 };
    let (updates, deletes, rmws, inserts) = (share(25), share(25), share(30), share(40));
    Shape {
        operations: 1 + rng.below(8) as usize,
        clients: 1 + rng.below(5),
        keys: 1,
        updates,
        deletes,
        rmws,
        inserts: inserts.max(10),
        longest: [1, 4, 20, 100][rng.below(4) as usize],
        digests: [None, None, Some(1), Some(2), Some(3)][rng.below(5) as usize],
        unreturned: [0, 0, 15, 50][rng.below(4) as usize],
    }
}

/// Changes one thing that one operation says.
fn mutate(rng: &mut Dice, history: &mut [Operation<u64>]) {
    let known = |op: &Op| match *op {
        Op::Read { value } | Op::Update { value } => value,
        Op::Insert { value } => Some(value),
        Op::Delete => None,
        Op::Rmw { new, .. } => Some(new),
    };
    let other = known(&history[rng.below(history.len() as u64) as usize].op);
    let victim = rng.below(history.len() as u64) as usize;
    match &mut history[victim].op {
        Op::Read { value } | Op::Update { value } | Op::Rmw { value, .. } => *value = other,
        Op::Insert { value } => *value = other.unwrap_or(7),
        op @ Op::Delete => *op = Op::Read { value: other },
    }
}

/// Whether the operations are fine but for the return of the culprit. Operations may look the same: then it is
/// enough if one of them is the culprit.
fn blames(initial: Option<u64>, operations: &[Operation<u64>], culprit: &Operation<u64>) -> bool {
    (0..operations.len()).filter(|&at| operations[at] == *culprit).any(|at| {
        let mut before = operations.to_vec();
        before[at].ret = None;
        is_linearizable(initial, &before)
    })
}

fn agrees_with_brute_force(initial: Option<u64>, history: &[Operation<u64>]) -> bool {
    let expected = is_linearizable(initial, history);
    match check_history_from(initial, history, Limits::default()) {
        Verdict::Linearizable { keys, operations } => {
            assert!(expected, "not linearizable: {initial:?} {history:#?}");
            assert_eq!((keys, operations), (1, history.len()));
        }
        Verdict::Violation(violation) => {
            assert!(!expected, "linearizable: {history:#?}\nbut the checker says: {violation}");
            assert!(!is_linearizable(initial, &violation.prefix), "the prefix proves it: {violation:#?}");
            assert!(!is_linearizable(initial, &violation.core), "the core proves it: {violation:#?}");
            let prefix_blames = blames(initial, &violation.prefix, &violation.culprit);
            assert!(prefix_blames, "no smaller prefix proves it: {violation:#?}");
            let core_blames = blames(initial, &violation.core, &violation.culprit);
            assert!(core_blames, "the core shows nothing else: {violation:#?}");
            assert!(violation.core.iter().all(|operation| violation.prefix.contains(operation)));
        }
        Verdict::Unknown { why } => panic!("{why}: {history:#?}"),
    }
    expected
}

#[test]
fn what_happened_in_a_perfect_memory_is_linearizable() {
    for_seeds("what_happened_in_a_perfect_memory_is_linearizable", 20_000, |rng| {
        let initial = rng.percent(30).then_some(0);
        let shape = small_shape(rng);
        let history = simulate(rng, &shape, initial);
        assert!(agrees_with_brute_force(initial, &history), "by construction: {history:#?}");
    });
}

#[test]
fn a_history_with_one_lie_gets_the_verdict_of_brute_force() {
    let (mut good, mut bad) = (0, 0);
    for_seeds("a_history_with_one_lie_gets_the_verdict_of_brute_force", 30_000, |rng| {
        let initial = rng.percent(30).then_some(0);
        let shape = small_shape(rng);
        let mut history = simulate(rng, &shape, initial);
        mutate(rng, &mut history);
        *(if agrees_with_brute_force(initial, &history) { &mut good } else { &mut bad }) += 1;
    });
    let alone = good + bad == 1;
    assert!(alone || (good > 1_000 && bad > 1_000), "both verdicts must be frequent: {good} and {bad}");
}

#[test]
fn an_update_that_claims_a_deleted_key_is_caught_with_evidence() {
    for_seeds("an_update_that_claims_a_deleted_key_is_caught_with_evidence", 10_000, |rng| {
        let base = Shape { updates: 30, deletes: 20, rmws: 5, inserts: 20, ..small_shape(rng) };
        let shape = Shape { operations: 14, clients: 2, digests: None, longest: 20, unreturned: 0, ..base };
        let mut history = simulate(rng, &shape, None);
        let absent = |operation: &&mut Operation<u64>| operation.op == Op::Update { value: None };
        if let Some(update) = history.iter_mut().rev().find(absent) {
            update.op = Op::Update { value: Some(7) };
        }
        agrees_with_brute_force(None, &history);
    });
}

#[test]
fn the_order_of_the_file_does_not_matter() {
    for_seeds("the_order_of_the_file_does_not_matter", 3_000, |rng| {
        let shape = Shape { longest: 50, ..small_shape(rng) };
        let mut history = simulate(rng, &shape, None);
        // An operation that takes no time has no place of its own among others of its client.
        history.retain(|operation| operation.ret != Some(operation.invoke));
        if history.is_empty() {
            return;
        }
        mutate(rng, &mut history);
        let expected = agrees_with_brute_force(None, &history);
        for last in (1..history.len()).rev() {
            history.swap(last, rng.below(last as u64 + 1) as usize);
        }
        assert_eq!(agrees_with_brute_force(None, &history), expected);
    });
}

#[test]
fn a_limit_withholds_a_verdict_but_never_changes_it() {
    let (mut decided, mut withheld) = (0, 0);
    for_seeds("a_limit_withholds_a_verdict_but_never_changes_it", 10_000, |rng| {
        let shape = Shape { longest: 100, operations: 7, ..small_shape(rng) };
        let mut history = simulate(rng, &shape, None);
        mutate(rng, &mut history);
        let limits = Limits { configurations: 1 + rng.below(4) as usize, ..Limits::default() };
        match check_history_from(None, &history, limits) {
            Verdict::Linearizable { .. } => assert!(is_linearizable(None, &history), "{history:#?}"),
            Verdict::Violation(_) => assert!(!is_linearizable(None, &history), "{history:#?}"),
            Verdict::Unknown { .. } => {
                withheld += 1;
                return;
            }
        }
        decided += 1;
    });
    let alone = decided + withheld == 1;
    assert!(alone || (decided > 100 && withheld > 100), "both must be frequent: {decided} and {withheld}");
}
