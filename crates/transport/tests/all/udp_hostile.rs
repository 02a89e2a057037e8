//! Whoever does not have the key, or only repeats what others said, gets nothing across: each such datagram is
//! dropped and counted, and what is genuine still arrives.

use crate::tapped;

use random::Random;
use tapped::{B, Pair, dropped, key, refused};
use transport::{Cause, Transport as _};

/// The genuine datagram still passes after whatever was tried, once.
fn still_passes(pair: &mut Pair, genuine: &[Vec<u8>], numbers: &[u64]) {
    pair.deliver(genuine);
    assert_eq!(pair.numbers(), numbers);
}

#[test]
fn another_key_is_refused() {
    let mut pair = Pair::unknown_peers(key(1), key(2), 1_500);
    for _ in 0..5 {
        pair.pass_all();
    }
    assert!(!pair.a.is_connected(B));
    assert!(dropped(&pair.a, Cause::WrongKey) > 0 && dropped(&pair.b, Cause::WrongKey) > 0);
}

#[test]
fn a_peer_with_a_key_and_one_without_refuse_each_other() {
    let mut pair = Pair::unknown_peers(key(1), None, 1_500);
    for _ in 0..5 {
        pair.pass_all();
    }
    assert!(!pair.a.is_connected(B));
    assert!(dropped(&pair.a, Cause::WrongKey) > 0 && dropped(&pair.b, Cause::WrongKey) > 0);
}

#[test]
fn what_is_sent_again_is_dropped_with_a_key_and_without() {
    for rack in [key(1), None] {
        let mut pair = Pair::unknown_peers(rack.clone(), rack, 1_500);
        pair.connect();
        let first = pair.sealed([1], 8);
        let second = pair.sealed([2], 8);
        pair.deliver(&second);
        for _ in 0..3 {
            pair.deliver(&second);
        }
        pair.deliver(&first);
        pair.deliver(&first);
        assert_eq!(pair.numbers(), [2, 1], "late is not replayed");
        assert_eq!(dropped(&pair.b, Cause::Replayed), 4);
    }
}

#[test]
fn what_comes_later_than_the_window_is_dropped_and_what_comes_just_in_time_is_not() {
    const SPAN: usize = 2_048;
    let mut pair = Pair::connected(1_500);
    let datagrams: Vec<Vec<u8>> =
        (0..SPAN as u64 + 1).flat_map(|number| pair.sealed_now([number], 0)).collect();
    assert_eq!(datagrams.len(), SPAN + 1);
    pair.deliver(&datagrams[SPAN..]);
    pair.deliver(&datagrams[..2]);
    assert_eq!(pair.numbers(), [SPAN as u64, 1]);
    assert_eq!(dropped(&pair.b, Cause::Replayed), 1);
}

#[test]
fn a_datagram_that_is_cut_at_any_length_is_dropped() {
    let mut pair = Pair::connected(1_500);
    let genuine = pair.sealed([1], 2);
    let length = genuine[0].len();
    let cut: Vec<Vec<u8>> = (0..length).map(|to| genuine[0][..to].to_vec()).collect();
    pair.deliver(&cut);
    assert_eq!(refused(&pair.b), length as u64);
    still_passes(&mut pair, &genuine, &[1]);
}

#[test]
fn a_datagram_with_any_bit_changed_is_dropped() {
    let mut pair = Pair::connected(1_500);
    // The counter of the second is not the newest when it comes: its bits can be changed both ways.
    let genuine = pair.sealed([1], 2);
    let newer = pair.sealed([2], 2);
    pair.deliver(&newer);
    let mut tried = 0;
    for at in 0..genuine[0].len() {
        for bit in 0..8 {
            let mut changed = genuine[0].clone();
            changed[at] ^= 1 << bit;
            pair.deliver(&[changed]);
            tried += 1;
        }
    }
    assert_eq!(refused(&pair.b), tried);
    assert_eq!(pair.numbers(), [2]);
    // The session has survived the changed names of sessions.
    still_passes(&mut pair, &genuine, &[2, 1]);
}

#[test]
fn a_greeting_with_any_bit_changed_is_dropped() {
    let mut pair = Pair::unknown_peers(key(1), key(1), 1_500);
    let greeting = pair.tap.sent_by_a().remove(0);
    let before = refused(&pair.b);
    let mut tried = 0;
    for at in 0..greeting.len() {
        for bit in 0..8 {
            let mut changed = greeting.clone();
            changed[at] ^= 1 << bit;
            pair.deliver(&[changed]);
            tried += 1;
        }
    }
    assert_eq!(refused(&pair.b) - before, tried);
}

#[test]
fn random_bytes_are_dropped() {
    let mut pair = Pair::connected(1_500);
    let genuine = pair.sealed([1], 2);
    let mut random = Random::new(5);
    let mut noise = Vec::new();
    for round in 0..3_000 {
        let mut bytes: Vec<u8> = (0..random.below(200)).map(|_| random.bits() as u8).collect();
        // A part of them with a genuine head.
        if round % 3 == 0 && bytes.len() >= 32 {
            bytes[..32].copy_from_slice(&genuine[0][..32]);
        }
        noise.push(bytes);
    }
    pair.deliver(&noise);
    assert_eq!(refused(&pair.b), 3_000);
    still_passes(&mut pair, &genuine, &[1]);
}

#[test]
fn a_datagram_for_the_other_direction_is_dropped() {
    let mut pair = Pair::connected(1_500);
    let genuine = pair.sealed([1], 2);
    pair.tap.to_a(&pair.a, &genuine[0]);
    pair.receive();
    // As if B had sent it.
    let mut turned = genuine[0].clone();
    turned.swap(4, 5);
    let (left, right) = turned[16..32].split_at_mut(8);
    left.swap_with_slice(right);
    pair.tap.to_a(&pair.a, &turned);
    while refused(&pair.a) < 2 {
        pair.receive();
    }
    assert_eq!(pair.got_a, []);
    assert_eq!((dropped(&pair.a, Cause::Malformed), dropped(&pair.a, Cause::WrongKey)), (1, 1));
}

#[test]
fn a_flood_of_refused_datagrams_is_answered_with_a_greeting_every_5_ms_at_most() {
    let mut pair = Pair::connected(1_500);
    let mut other_incarnation = pair.sealed([1], 2).remove(0);
    other_incarnation[20] ^= 1;
    while !pair.tap.sent_by_b().is_empty() {}
    let start = std::time::Instant::now();
    pair.deliver(&vec![other_incarnation; 2_000]);
    let most = start.elapsed().as_millis() / 5 + 1;
    assert_eq!(dropped(&pair.b, Cause::OtherIncarnation), 2_000);
    let sent = pair.tap.sent_by_b().len() as u128;
    assert!((1..=most).contains(&sent), "{sent} greetings, {most} are allowed");
    assert_eq!(pair.b.counters().counts().sent, 0);
}
