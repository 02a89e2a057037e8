//! The event queue against what it promises: order by time, then by pushing; nothing lost; no way into the
//! past.
//!
//! It runs outside of any rack. The model is a sorted map from time and number of the push to the event.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sim::queue::EventQueue;
use sim::system::Random;
use wire::Nanos;

/// How far ahead an event is pushed, for every way through the wheel: now, soon, around the end of a span of
/// each level, very far.
fn ahead() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => Just(0),
        4 => 0..8u64,
        4 => 0..3_000u64,
        2 => 0..1_000_000u64,
        2 => (0..64u32, -3..4i64).prop_map(|(bit, off)| (1u64 << bit).saturating_add_signed(off)),
        1 => Just(u64::MAX / 2),
        1 => Just(u64::MAX),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Push(u64),
    /// Push for the instant for which the last event was pushed, if that is not over.
    PushTie,
    Pop,
    Peek,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => ahead().prop_map(Step::Push),
        2 => Just(Step::PushTie),
        6 => Just(Step::Pop),
        2 => Just(Step::Peek),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn events_come_by_time_and_then_in_the_order_of_pushing(steps in prop::collection::vec(step(), 0..400)) {
        let mut queue = EventQueue::new();
        let mut model = BTreeMap::new();
        let mut now = Nanos::ZERO;
        let mut last = Nanos::ZERO;
        let mut number = 0u64;
        for step in steps {
            match step {
                Step::Push(_) | Step::PushTie => {
                    let at = if let Step::Push(ahead) = step { now + Nanos(ahead) } else { last.max(now) };
                    last = at;
                    queue.push(at, number);
                    model.insert((at, number), number);
                    number += 1;
                }
                Step::Pop => {
                    let expected = model.pop_first().map(|((at, _), event)| (at, event));
                    let found = queue.pop();
                    prop_assert_eq!(found, expected);
                    now = found.map_or(now, |(at, _)| at);
                }
                Step::Peek => {
                    prop_assert_eq!(queue.peek_time(), model.first_key_value().map(|((at, _), _)| *at));
                }
            }
            prop_assert_eq!(queue.len(), model.len());
            prop_assert_eq!(queue.is_empty(), model.is_empty());
        }
        while let Some(((at, _), event)) = model.pop_first() {
            prop_assert_eq!(queue.pop(), Some((at, event)));
        }
        prop_assert_eq!(queue.pop(), None);
    }
}

#[test]
fn an_event_pushed_while_its_instant_runs_comes_after_the_others_of_the_instant() {
    let mut queue = EventQueue::new();
    queue.push(Nanos(7), "first");
    queue.push(Nanos(7), "second");
    assert_eq!(queue.pop(), Some((Nanos(7), "first")));
    queue.push(Nanos(7), "pushed by the first");
    assert_eq!(queue.pop(), Some((Nanos(7), "second")));
    queue.push(Nanos(7), "pushed by the second");
    assert_eq!(queue.pop(), Some((Nanos(7), "pushed by the first")));
    assert_eq!(queue.pop(), Some((Nanos(7), "pushed by the second")));
    assert_eq!(queue.pop(), None);
}

#[test]
fn the_order_of_pushing_survives_different_ways_through_the_wheel() {
    let mut queue = EventQueue::new();
    let instant = Nanos::from_millis(20);
    queue.push(instant, "pushed from afar");
    queue.push(Nanos::from_millis(19), "on the way");
    assert_eq!(queue.pop(), Some((Nanos::from_millis(19), "on the way")));
    queue.push(instant, "pushed from nearer");
    queue.push(Nanos(instant.0 - 1), "just before");
    assert_eq!(queue.pop(), Some((Nanos(instant.0 - 1), "just before")));
    queue.push(instant, "pushed from beside");
    assert_eq!(queue.pop(), Some((instant, "pushed from afar")));
    assert_eq!(queue.pop(), Some((instant, "pushed from nearer")));
    assert_eq!(queue.pop(), Some((instant, "pushed from beside")));
}

#[test]
fn looking_at_a_far_event_does_not_forbid_a_nearer_one() {
    let mut queue = EventQueue::new();
    queue.push(Nanos::from_millis(5), "far");
    assert_eq!(queue.peek_time(), Some(Nanos::from_millis(5)));
    queue.push(Nanos(3), "near");
    assert_eq!(queue.peek_time(), Some(Nanos(3)));
    assert_eq!(queue.pop(), Some((Nanos(3), "near")));
    assert_eq!(queue.pop(), Some((Nanos::from_millis(5), "far")));
}

#[test]
#[should_panic(expected = "was pushed at")]
fn an_event_in_the_past_is_a_mistake() {
    let mut queue = EventQueue::new();
    queue.push(Nanos(10), ());
    queue.pop();
    queue.push(Nanos(9), ());
}

#[test]
fn a_million_events_of_all_distances_come_in_order() {
    let mut queue = EventQueue::new();
    let mut random = Random::new(3);
    for number in 0..1_000_000u64 {
        let bits = random.below(40);
        queue.push(Nanos(random.below(1 << bits)), number);
    }
    let mut last = (Nanos::ZERO, 0);
    let mut popped = 0;
    while let Some(next) = queue.pop() {
        assert!(popped == 0 || last < next, "{next:?} came after {last:?}");
        last = next;
        popped += 1;
    }
    assert_eq!(popped, 1_000_000);
}
