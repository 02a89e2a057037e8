//! How much searching it takes: limits withhold verdicts, and each rule of the search keeps within its limit what
//! would exceed it otherwise.

use std::time::Duration;

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, Violation, check_history};
use wire::Nanos;

type History = Vec<Operation<&'static str>>;

fn op(client: u64, op: Op, invoke: u64, ret: u64) -> Operation<&'static str> {
    Operation { client, key: "x", op, invoke: Nanos(invoke), ret: Some(Nanos(ret)) }
}

fn read(value: u64) -> Op {
    Op::Read { value: Some(value) }
}

fn insert(value: u64) -> Op {
    Op::Insert { value }
}

const READ_ABSENT: Op = Op::Read { value: None };

fn within(configurations: usize) -> Limits {
    Limits { configurations, ..Limits::default() }
}

fn passes_within(configurations: usize, history: &History) {
    let verdict = check_history(history, within(configurations));
    assert!(matches!(verdict, Verdict::Linearizable { .. }), "{verdict}");
}

fn fails_within(configurations: usize, history: &History) -> Violation<&'static str> {
    match check_history(history, within(configurations)) {
        Verdict::Violation(violation) => violation,
        other => panic!("a violation must be found, not {other}"),
    }
}

/// Every value is written twice and read once, late: few rules of the search apply.
fn hard_history() -> History {
    let writes = (0..12).map(|client| op(client, insert(client / 2), 0, 1_000));
    let reads = (0..6).map(|value| op(100, read(value), 100 * value + 10, 100 * value + 20));
    writes.chain(reads).collect()
}

#[test]
fn too_many_configurations_are_no_verdict() {
    passes_within(1 << 20, &hard_history());
    let verdict = check_history(&hard_history(), within(3));
    let Verdict::Unknown { why } = verdict else {
        panic!("three configurations cannot be enough: {verdict}")
    };
    assert!(why.contains("more than 3 configurations"), "{why}");
}

#[test]
fn too_little_time_is_no_verdict() {
    let history: Vec<_> = (0..10_000).map(|i| op(0, insert(i), 10 * i, 10 * i + 5)).collect();
    let verdict = check_history(&history, Limits { time: Duration::ZERO, ..Limits::default() });
    let Verdict::Unknown { why } = verdict else { panic!("no time cannot be enough: {verdict}") };
    assert!(why.contains("time limit"), "{why}");
}

#[test]
fn a_violation_counts_even_if_another_key_is_undecided() {
    let mut history = hard_history();
    history.push(Operation { key: "y", ..op(0, read(9), 0, 5) });
    assert_eq!(fails_within(3, &history).key, "y");
}

#[test]
fn a_value_that_someone_must_still_see_is_not_left_for_a_search_elsewhere() {
    // A modification that leaves what it found is only a read, and gives nobody a second chance.
    for new in [101, 100] {
        let mut history = vec![
            op(20, insert(100), 0, 10),
            op(21, Op::Rmw { value: Some(100), new }, 20, 1_000),
            op(22, insert(102), 20, 30),
            op(23, read(100), 40, 50),
        ];
        // Much that could be tried in between, and would not help.
        history.extend(hard_history().into_iter().map(|hard| Operation {
            invoke: hard.invoke + Nanos(25),
            ret: hard.ret.map(|ret| ret + Nanos(25)),
            ..hard
        }));
        let violation = fails_within(4, &history);
        assert_eq!(violation.culprit, history[3], "{violation}");
    }
}

#[test]
fn a_write_that_must_be_seen_later_is_not_tried_before() {
    let mut history: History = (0..30).map(|value| op(value, insert(value), 0, 10_000)).collect();
    for value in 0..30 {
        let begin = 100 * value;
        history.push(op(100, read(value), begin + 10, begin + 20));
        history.push(op(100, read(value), begin + 30, begin + 40));
    }
    passes_within(2, &history);
}

#[test]
fn a_write_that_never_returned_but_was_seen_must_have_happened() {
    let mut history = vec![op(100, insert(100), 0, 5)];
    for value in 0..12 {
        history.push(op(value, insert(value), 10, 1_000));
        let unreturned = op(value + 20, Op::Rmw { value: Some(value), new: value + 50 }, 10, 0);
        history.push(Operation { ret: None, ..unreturned });
        history.push(op(value + 40, read(value + 50), 10, 1_000));
    }
    history.push(op(100, insert(101), 15, 20));
    passes_within(2, &history);
}

#[test]
fn writes_that_nobody_sees_are_not_tried_in_every_order() {
    let mut history: History = (0..30).map(|value| op(value, insert(value), 0, 10_000 + value)).collect();
    history.extend((30..60).map(|value| op(100, insert(value), 100 * value, 100 * value + 10)));
    passes_within(2, &history);
}

#[test]
fn deletes_are_taken_in_the_order_in_which_they_must_return() {
    let mut history: History = (0..20).map(|client| op(client, Op::Delete, 0, 10_000 + client)).collect();
    for round in 0..10 {
        let begin = 100 * round;
        history.push(op(100, insert(round), begin + 10, begin + 20));
        history.push(op(100, read(round), begin + 30, begin + 40));
        history.push(op(100, READ_ABSENT, begin + 50, begin + 60));
    }
    passes_within(64, &history);
}

#[test]
fn values_that_nobody_is_going_to_see_are_one_value() {
    // With deletes and updates in the history, inserts have to be tried one by one, each with its reads.
    let mut history = vec![
        op(100, insert(100), 0, 1),
        op(100, Op::Delete, 2, 3),
        op(100, insert(101), 4, 5),
        op(100, Op::Update { value: Some(102) }, 6, 7),
    ];
    for value in 0..8 {
        history.push(op(value, insert(value), 10, 1_000));
        history.push(op(value + 20, read(value), 10, 1_000));
    }
    history.push(op(100, insert(103), 10, 20));
    // Which of the eight have happened, before or after what had to: 2 * 2^8.
    passes_within(600, &history);
}
