//! The exhaustive check of histories, which the other tests rely on, finds what is wrong and nothing else.

use crate::support;

use support::history::{Answer, Ask, Call, assert_linearizable};

fn call(ask: Ask, answer: Answer, invoke: u64, ret: u64) -> Call {
    Call { worker: 0, key: 0, ask, answer, invoke, ret }
}

#[test]
fn concurrent_operations_may_have_happened_in_either_order() {
    let put = call(Ask::Put(vec![1]), Answer::Bool(false), 0, 10);
    for seen in [None, Some(vec![1])] {
        assert_linearizable(&[put.clone(), call(Ask::Get, Answer::Value(seen), 3, 4)]);
    }
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_stale_read_is_found() {
    let put = call(Ask::Put(vec![1]), Answer::Bool(false), 0, 2);
    assert_linearizable(&[put, call(Ask::Get, Answer::Value(None), 3, 4)]);
}

#[test]
#[should_panic(expected = "no order explains")]
fn two_inserts_that_both_find_nothing_are_found() {
    let insert = call(Ask::Insert(vec![1]), Answer::Bool(true), 0, 2);
    assert_linearizable(&[insert.clone(), insert]);
}
