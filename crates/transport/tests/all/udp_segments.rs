//! Messages longer than a datagram: in any order, doubled, with losses.

use crate::tapped;

use std::time::Duration;

use random::Dice;
use tapped::{Pair, dropped};
use transport::{Cause, Transport as _};

/// 8 KiB take six datagrams of 1,500.
const WORDS: usize = 1_024;

/// An order drawn from a seed.
fn shuffled<T: Clone>(items: &[T], seed: u64) -> Vec<T> {
    let mut items = items.to_vec();
    let mut random = Dice::new(seed);
    for at in (1..items.len()).rev() {
        items.swap(at, random.pick(at + 1));
    }
    items
}

#[test]
fn segments_in_any_order_make_the_message() {
    let mut pair = Pair::connected(1_500);
    for seed in 0..20 {
        let segments = shuffled(&pair.sealed([seed], WORDS), seed);
        pair.deliver(&segments);
    }
    assert_eq!(pair.numbers(), (0..20).collect::<Vec<_>>());
}

#[test]
fn segments_of_several_messages_that_are_mixed_make_all_of_them() {
    let mut pair = Pair::connected(1_280);
    for seed in 0..5 {
        let segments = pair.sealed(0..10, WORDS);
        pair.deliver(&shuffled(&segments, seed));
        let mut numbers = pair.numbers();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..10).collect::<Vec<_>>(), "seed {seed}");
        pair.got_b.clear();
    }
}

#[test]
fn doubled_segments_are_dropped_and_the_message_comes_once() {
    let mut pair = Pair::connected(1_500);
    let segments = pair.sealed([1], WORDS);
    let doubled: Vec<Vec<u8>> = segments.iter().flat_map(|bytes| [bytes.clone(), bytes.clone()]).collect();
    pair.deliver(&doubled);
    pair.deliver(&doubled);
    assert_eq!(pair.numbers(), [1]);
    assert_eq!(dropped(&pair.b, Cause::Replayed), 3 * segments.len() as u64);
}

#[test]
fn a_message_that_lost_a_segment_is_dropped_after_a_while_and_the_others_are_not() {
    let mut pair = Pair::connected(1_500);
    let count = pair.sealed([0], WORDS).len();
    for lost in 0..count {
        let mut segments = pair.sealed([lost as u64], WORDS);
        segments.remove(lost);
        pair.deliver(&segments);
    }
    let sent = pair.sealed([99], WORDS);
    pair.deliver(&sent);
    assert_eq!(pair.numbers(), [99]);
    assert_eq!(dropped(&pair.b, Cause::Incomplete), 0);
    std::thread::sleep(Duration::from_millis(250));
    pair.receive();
    assert_eq!(dropped(&pair.b, Cause::Incomplete), count as u64);
    assert_eq!(pair.b.counters().counts().received, 1);
}

#[test]
fn a_peer_that_never_completes_anything_does_not_keep_others_out() {
    let mut pair = Pair::connected(1_500);
    for number in 0..300 {
        let segments = pair.sealed([number], WORDS);
        pair.deliver(&segments[..1]);
    }
    let sent = pair.sealed([1_000], WORDS);
    pair.deliver(&sent);
    assert_eq!(pair.numbers(), [1_000]);
    assert!(dropped(&pair.b, Cause::Incomplete) >= 300 - 64);
}
