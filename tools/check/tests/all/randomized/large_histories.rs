//! Large histories: hot keys, many keys; and one lie that must be found among them.

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, check_history};

use crate::randomized::for_seeds;
use crate::randomized::simulated::{Shape, simulate};
use random::Dice;

/// 64 clients on one key.
const HOT: Shape = Shape {
    operations: 100_000,
    clients: 64,
    keys: 1,
    updates: 30,
    deletes: 0,
    rmws: 0,
    inserts: 20,
    longest: 2_000,
    digests: None,
    unreturned: 0,
};

/// Configurations that must do where digests are unique and nothing is deleted: as many as there are clients.
const FEW: usize = 64;

fn passes(shape: &Shape, rng: &mut Dice, configurations: usize) -> Vec<Operation<u64>> {
    let history = simulate(rng, shape, None);
    let verdict = check_history(&history, Limits { configurations, ..Limits::default() });
    assert!(matches!(verdict, Verdict::Linearizable { .. }), "{verdict}");
    history
}

/// Makes one read of the second half of the history see a value that had been overwritten for certain: an
/// insert that returned before another was invoked, which returned before the read was invoked.
fn make_stale(rng: &mut Dice, history: &mut [Operation<u64>]) -> Operation<u64> {
    let half = history.len() / 2;
    let is_read =
        |operation: &Operation<u64>| matches!(operation.op, Op::Read { .. }) && operation.ret.is_some();
    let start = half + rng.below(half as u64 / 2) as usize;
    let place = (start..history.len()).find(|&at| is_read(&history[at])).expect("there are reads");
    let inserted = |operation: &Operation<u64>| match operation.op {
        Op::Insert { value } => Some((value, operation.ret?)),
        _ => None,
    };
    let read = &history[place];
    let of_this_key = || history.iter().filter(|operation| operation.key == read.key);
    let newer = of_this_key()
        .filter(|operation| inserted(operation).is_some_and(|(_, ret)| ret < read.invoke))
        .max_by_key(|operation| operation.invoke)
        .expect("an insert was complete by then");
    let (stale, _) = of_this_key()
        .filter_map(inserted)
        .filter(|(_, ret)| *ret < newer.invoke)
        .max_by_key(|(_, ret)| *ret)
        .expect("and another before it");
    history[place].op = Op::Read { value: Some(stale) };
    history[place].clone()
}

fn fails_with_a_lie(rng: &mut Dice, mut history: Vec<Operation<u64>>) {
    let lie = make_stale(rng, &mut history);
    match check_history(&history, Limits::default()) {
        Verdict::Violation(violation) => {
            assert_eq!(violation.culprit, lie, "{violation}");
            assert!(violation.core.len() < 50, "the evidence is small:\n{violation}");
        }
        other => panic!("the stale read must be found: {other}"),
    }
}

#[test]
fn a_hot_key_with_64_clients() {
    let mut rng = Dice::new(1);
    let history = passes(&HOT, &mut rng, FEW);
    fails_with_a_lie(&mut rng, history);
}

#[test]
fn a_hot_key_that_everybody_modifies() {
    passes(&Shape { updates: 0, inserts: 0, rmws: 60, ..HOT }, &mut Dice::new(2), FEW);
}

#[test]
fn a_hot_key_with_everything_but_deletes_whose_clients_sometimes_vanish() {
    let mut rng = Dice::new(3);
    let shape = Shape { updates: 10, inserts: 10, rmws: 30, unreturned: 1, ..HOT };
    let history = passes(&shape, &mut rng, FEW);
    fails_with_a_lie(&mut rng, history);
}

#[test]
fn a_hot_key_that_is_often_deleted() {
    for_seeds("a_hot_key_that_is_often_deleted", 5, |rng| {
        let shape =
            Shape { operations: 10_000, clients: 16, updates: 0, inserts: 20, rmws: 10, deletes: 20, ..HOT };
        let history = passes(&shape, rng, 4_096);
        fails_with_a_lie(rng, history);
    });
}

#[test]
fn a_hot_key_that_is_deleted_and_updated() {
    for_seeds("a_hot_key_that_is_deleted_and_updated", 5, |rng| {
        let shape =
            Shape { operations: 5_000, clients: 8, updates: 20, inserts: 20, rmws: 10, deletes: 20, ..HOT };
        let history = passes(&shape, rng, 4_096);
        fails_with_a_lie(rng, history);
    });
}

#[test]
fn a_hot_word_with_few_values() {
    for_seeds("a_hot_word_with_few_values", 5, |rng| {
        let shape = Shape {
            operations: 10_000,
            clients: 16,
            updates: 0,
            inserts: 10,
            rmws: 40,
            digests: Some(2),
            ..HOT
        };
        passes(&shape, rng, 4_096);
    });
}

#[test]
fn many_keys() {
    let mut rng = Dice::new(4);
    let shape = Shape { operations: 200_000, keys: 5_000, rmws: 10, inserts: 30, updates: 10, ..HOT };
    let history = passes(&shape, &mut rng, FEW);
    fails_with_a_lie(&mut rng, history);
}
