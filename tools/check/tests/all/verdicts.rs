//! What is linearizable and what is not, one small history each.

use check::history::{Op, Operation};
use check::linearizability::{Limits, Verdict, Violation, check_history, check_history_from};
use wire::Nanos;

type History = Vec<Operation<&'static str>>;

/// An operation of `client` on key "x", from `invoke` to `ret`.
fn op(client: u64, op: Op, invoke: u64, ret: u64) -> Operation<&'static str> {
    Operation { client, key: "x", op, invoke: Nanos(invoke), ret: Some(Nanos(ret)) }
}

/// The same, but it never returned.
fn unreturned(client: u64, op: Op, invoke: u64) -> Operation<&'static str> {
    Operation { client, key: "x", op, invoke: Nanos(invoke), ret: None }
}

fn read(value: u64) -> Op {
    Op::Read { value: Some(value) }
}

fn insert(value: u64) -> Op {
    Op::Insert { value }
}

fn update(value: u64) -> Op {
    Op::Update { value: Some(value) }
}

fn rmw(value: u64, new: u64) -> Op {
    Op::Rmw { value: Some(value), new }
}

const READ_ABSENT: Op = Op::Read { value: None };
const UPDATE_ABSENT: Op = Op::Update { value: None };

fn passes(history: &History) {
    let verdict = check_history(history, Limits::default());
    assert!(matches!(verdict, Verdict::Linearizable { .. }), "{verdict}");
}

/// The violation; what it blames must be the operation at `culprit`.
fn fails_at(culprit: usize, history: &History) -> Violation<&'static str> {
    match check_history(history, Limits::default()) {
        Verdict::Violation(violation) => {
            assert_eq!(violation.culprit, history[culprit], "{violation}");
            violation
        }
        other => panic!("a violation must be found, not {other}"),
    }
}

#[test]
fn nothing_at_all_is_linearizable() {
    assert_eq!(
        check_history::<u64>(&[], Limits::default()),
        Verdict::Linearizable { keys: 0, operations: 0 }
    );
}

#[test]
fn one_client_reads_what_it_wrote() {
    passes(&vec![
        op(0, READ_ABSENT, 0, 1),
        op(0, UPDATE_ABSENT, 2, 3),
        op(0, insert(1), 4, 5),
        op(0, read(1), 6, 7),
        op(0, rmw(1, 2), 8, 9),
        op(0, update(3), 10, 11),
        op(0, read(3), 12, 13),
        op(0, Op::Delete, 14, 15),
        op(0, READ_ABSENT, 16, 17),
    ]);
}

#[test]
fn a_read_during_a_write_may_see_either_value() {
    for seen in [1, 2] {
        passes(&vec![op(0, insert(1), 0, 10), op(0, insert(2), 20, 40), op(1, read(seen), 25, 35)]);
    }
}

#[test]
fn a_stale_read_after_a_completed_write_fails() {
    let violation =
        fails_at(2, &vec![op(0, insert(1), 0, 10), op(0, insert(2), 20, 30), op(1, read(1), 31, 40)]);
    assert_eq!(violation.prefix.len(), 3);
    assert_eq!(violation.core.len(), 3);
}

#[test]
fn an_absent_read_after_a_completed_insert_fails() {
    fails_at(1, &vec![op(0, insert(1), 0, 10), op(1, READ_ABSENT, 11, 20)]);
}

#[test]
fn a_read_of_a_value_that_was_never_written_fails() {
    fails_at(1, &vec![op(0, insert(1), 0, 10), op(1, read(7), 5, 20)]);
}

#[test]
fn a_read_that_returned_before_the_write_of_its_value_began_fails() {
    fails_at(1, &vec![op(0, insert(1), 0, 10), op(1, read(2), 20, 30), op(0, insert(2), 31, 40)]);
}

#[test]
fn a_read_may_see_a_write_that_returns_much_later() {
    passes(&vec![op(0, insert(1), 0, 1_000), op(1, read(1), 10, 20), op(2, read(1), 30, 40)]);
}

#[test]
fn once_a_read_has_seen_a_write_no_later_read_may_miss_it() {
    fails_at(
        3,
        &vec![
            op(0, insert(1), 0, 10),
            op(0, insert(2), 20, 1_000),
            op(1, read(2), 30, 40),
            op(2, read(1), 50, 60),
        ],
    );
}

#[test]
fn two_readers_that_see_two_writes_in_opposite_orders_fail() {
    fails_at(
        5,
        &vec![
            op(0, insert(1), 0, 100),
            op(1, insert(2), 0, 100),
            op(2, read(1), 10, 20),
            op(3, read(2), 10, 21),
            op(2, read(2), 30, 40),
            op(3, read(1), 30, 41),
        ],
    );
}

#[test]
fn two_readers_that_see_two_writes_in_one_order_pass() {
    passes(&vec![
        op(0, insert(1), 0, 100),
        op(1, insert(2), 0, 100),
        op(2, read(1), 10, 20),
        op(3, read(1), 10, 21),
        op(2, read(2), 30, 40),
        op(3, read(2), 30, 41),
    ]);
}

#[test]
fn two_read_modify_writes_of_one_value_lose_an_update_and_fail() {
    fails_at(2, &vec![op(0, insert(1), 0, 10), op(0, rmw(1, 2), 20, 40), op(1, rmw(1, 3), 25, 45)]);
}

#[test]
fn read_modify_writes_that_follow_each_other_pass_in_whatever_order_they_return() {
    passes(&vec![
        op(0, insert(1), 0, 10),
        op(1, rmw(2, 3), 20, 30),
        op(2, rmw(3, 4), 20, 25),
        op(3, rmw(1, 2), 20, 40),
        op(4, read(4), 41, 50),
    ]);
}

#[test]
fn a_read_modify_write_of_a_stale_value_fails() {
    fails_at(2, &vec![op(0, insert(1), 0, 10), op(0, insert(2), 20, 30), op(1, rmw(1, 3), 31, 40)]);
}

#[test]
fn a_write_between_the_halves_of_a_read_modify_write_fails() {
    fails_at(
        4,
        &vec![
            op(0, insert(1), 0, 10),
            op(0, rmw(1, 3), 15, 50),
            op(1, insert(2), 20, 30),
            op(2, read(2), 31, 40),
            op(2, read(3), 51, 60),
        ],
    );
}

#[test]
fn a_value_that_comes_back_after_a_delete_fails() {
    fails_at(
        3,
        &vec![
            op(0, insert(1), 0, 10),
            op(0, Op::Delete, 20, 30),
            op(1, READ_ABSENT, 31, 40),
            op(1, read(1), 41, 50),
        ],
    );
}

#[test]
fn a_deleted_key_cannot_be_updated() {
    fails_at(2, &vec![op(0, insert(1), 0, 10), op(0, Op::Delete, 20, 30), op(1, update(2), 31, 40)]);
}

#[test]
fn a_present_key_cannot_be_found_absent_by_an_update() {
    fails_at(1, &vec![op(0, insert(1), 0, 10), op(1, UPDATE_ABSENT, 11, 20)]);
}

#[test]
fn an_update_may_find_the_key_before_or_after_a_concurrent_delete() {
    for (found, left) in [(update(2), READ_ABSENT), (UPDATE_ABSENT, READ_ABSENT)] {
        passes(&vec![
            op(0, insert(1), 0, 10),
            op(0, Op::Delete, 20, 40),
            op(1, found, 20, 40),
            op(2, left, 41, 50),
        ]);
    }
}

#[test]
fn one_delete_explains_one_absence_only() {
    let history = vec![
        op(0, insert(1), 0, 10),
        op(1, Op::Delete, 20, 100),
        op(2, READ_ABSENT, 30, 40),
        op(0, insert(2), 50, 60),
        op(2, READ_ABSENT, 70, 80),
    ];
    fails_at(4, &history);
    let mut with_another = history;
    with_another.push(op(3, Op::Delete, 20, 100));
    passes(&with_another);
}

#[test]
fn a_write_that_never_returned_may_be_seen_or_not() {
    let begun = vec![op(0, insert(1), 0, 10), unreturned(1, insert(2), 20)];
    for seen in [1, 2] {
        let mut history = begun.clone();
        history.push(op(2, read(seen), 30, 40));
        passes(&history);
    }
}

#[test]
fn a_write_that_never_returned_happens_once() {
    fails_at(
        4,
        &vec![
            op(0, insert(1), 0, 10),
            unreturned(1, insert(2), 20),
            op(2, read(2), 30, 40),
            op(0, insert(3), 50, 60),
            op(2, read(2), 70, 80),
        ],
    );
}

#[test]
fn a_read_modify_write_that_never_returned_may_explain_a_value_that_others_wrote_too() {
    let history = vec![
        op(0, insert(5), 0, 10),
        op(0, insert(6), 20, 30),
        // Only in this order: the one delete comes last, and nothing else writes 5 by then.
        op(1, insert(2), 40, 100),
        unreturned(2, rmw(2, 5), 41),
        op(3, read(5), 42, 100),
        op(4, insert(7), 40, 45),
        op(0, Op::Delete, 50, 60),
        op(0, READ_ABSENT, 61, 70),
        op(0, READ_ABSENT, 101, 110),
    ];
    passes(&history);
    let mut with_an_update = history;
    with_an_update.push(op(0, update(8), 11, 19));
    passes(&with_an_update);
}

#[test]
fn a_write_whose_value_may_have_been_modified_is_not_one_that_nobody_sees() {
    // The value 7 comes before 2, though 2 returns first: the modification of 2 is read afterwards.
    passes(&vec![
        op(0, insert(5), 0, 10),
        op(0, update(8), 11, 19),
        op(0, Op::Delete, 20, 30),
        op(1, insert(2), 40, 45),
        unreturned(2, rmw(2, 5), 41),
        op(4, insert(7), 40, 60),
        op(3, read(5), 70, 80),
    ]);
}

#[test]
fn a_read_that_never_returned_says_nothing() {
    passes(&vec![op(0, insert(1), 0, 10), unreturned(1, read(99), 20)]);
}

#[test]
fn a_read_modify_write_that_never_returned_takes_what_it_read_or_nothing() {
    let begun = vec![op(0, insert(1), 0, 10), unreturned(1, rmw(1, 2), 20)];
    let seen = |values: [u64; 2]| {
        let mut history = begun.clone();
        history.push(op(0, rmw(1, 3), 30, 40));
        history.extend(values.iter().zip([50, 70]).map(|(value, at)| op(2, read(*value), at, at + 10)));
        history
    };
    passes(&seen([3, 3]));
    fails_at(3, &seen([2, 2]));
    fails_at(4, &seen([3, 2]));
}

#[test]
fn operations_that_only_touch_are_concurrent() {
    passes(&vec![op(0, insert(1), 0, 10), op(1, READ_ABSENT, 10, 20)]);
}

#[test]
fn operations_of_one_client_are_in_order_even_if_they_touch() {
    fails_at(1, &vec![op(0, insert(1), 0, 10), op(0, READ_ABSENT, 10, 20)]);
    // In no time at all, and whatever the order in which the history lists them.
    fails_at(0, &vec![op(0, READ_ABSENT, 10, 12), op(0, insert(1), 10, 10)]);
}

#[test]
fn a_read_that_takes_no_time_holds_up_no_later_one_of_its_client() {
    passes(&vec![op(1, insert(1), 0, 5), op(0, read(1), 10, 12), op(0, read(1), 10, 10)]);
}

#[test]
fn repeated_digests_are_one_value() {
    let history = vec![
        op(0, insert(1), 0, 10),
        op(1, insert(2), 20, 30),
        op(0, insert(1), 40, 50),
        op(1, read(1), 60, 70),
    ];
    passes(&history);
    let mut stale = history;
    stale.push(op(1, read(2), 80, 90));
    fails_at(4, &stale);
}

#[test]
fn zeroed_words_begin_as_zero() {
    let word = |op, invoke, ret| Operation {
        client: 0,
        key: 0x1000_u64,
        op,
        invoke: Nanos(invoke),
        ret: Some(Nanos(ret)),
    };
    let history = [word(read(0), 0, 1), word(rmw(0, 5), 2, 3), word(read(5), 4, 5)];
    let verdict = check_history_from(Some(0), &history, Limits::default());
    assert_eq!(verdict, Verdict::Linearizable { keys: 1, operations: 3 });
    assert!(matches!(check_history(&history, Limits::default()), Verdict::Violation(_)));
}

#[test]
fn the_key_that_fails_first_is_named_whatever_comes_first_in_the_file() {
    let on =
        |key, op, invoke, ret| Operation { client: 0, key, op, invoke: Nanos(invoke), ret: Some(Nanos(ret)) };
    let history = [
        on("late", read(8), 500, 600),
        on("fine", insert(1), 0, 10),
        on("early", read(9), 100, 200),
        on("fine", read(1), 700, 800),
    ];
    let Verdict::Violation(violation) = check_history(&history, Limits::default()) else {
        panic!("two keys must fail")
    };
    assert_eq!((violation.key, violation.other_keys), ("early", 1));
}

#[test]
fn the_explanation_leaves_out_what_has_nothing_to_do_with_it() {
    let mut history: History = (0..100)
        .flat_map(|i| [op(0, insert(i), 40 * i, 40 * i + 10), op(1, read(i), 40 * i + 20, 40 * i + 30)])
        .collect();
    history.push(op(2, read(97), 3_990, 4_000));
    history.push(op(0, insert(500), 4_010, 4_020));
    let violation = fails_at(200, &history);
    assert_eq!(violation.prefix.len(), 201, "what came later is no part of the prefix");
    assert_eq!(violation.core.len(), 3, "its write, a write after it, and the read:\n{violation}");
    let text = violation.to_string();
    assert!(
        text.contains("key \"x\"") && text.contains("client 2 is told: read   -> 0000000000000061"),
        "{text}"
    );
    assert_eq!(text.matches("<- fails here").count(), 1, "{text}");
}

#[test]
fn the_explanation_leaves_out_no_insert_that_an_update_in_it_needs() {
    let history = vec![
        op(0, insert(1), 0, 1),
        op(0, update(2), 2, 3),
        op(0, Op::Delete, 4, 5),
        op(0, insert(3), 6, 7),
        op(0, update(4), 8, 9),
        op(0, Op::Delete, 10, 11),
        op(1, update(5), 12, 13),
    ];
    let violation = fails_at(6, &history);
    assert!(violation.core.contains(&violation.culprit), "{violation}");
    let others = violation.core.into_iter().filter(|operation| *operation != history[6]).collect();
    passes(&others);
}

#[test]
fn the_explanation_of_a_late_absence_shows_that_the_key_was_absent_once() {
    let history = [op(0, Op::Delete, 0, 10), op(0, insert(1), 20, 30), op(1, READ_ABSENT, 40, 50)];
    let Verdict::Violation(violation) = check_history_from(Some(7), &history, Limits::default()) else {
        panic!("the key is present again")
    };
    assert_eq!(violation.core, history, "{violation}");
}

#[test]
fn a_history_that_returns_before_it_asks_is_not_judged() {
    let verdict = check_history(&[op(0, insert(1), 10, 5)], Limits::default());
    assert!(matches!(verdict, Verdict::Unknown { .. }), "{verdict}");
}
