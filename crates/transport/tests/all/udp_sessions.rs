//! Incarnations of peers: a new incarnation of a peer ends its former one at once, and nothing that was sent in a former incarnation,
//! or for one, has any effect.

use crate::tapped;

use std::time::Instant;

use tapped::{A, B, Pair, TIMEOUT, Tap, config, dropped, key, receive};
use transport::udp::UdpTransport;
use transport::{Body, Cause, Outgoing, PeerId, Transport};

/// A ends its incarnation and begins another one, on another port: the wire leads there.
fn restart_a(pair: &mut Pair) {
    let a = UdpTransport::bind(&config(A, &[(B, pair.tap.for_a())], key(1), 1_500)).expect("A");
    pair.a = a;
}

#[test]
fn both_sides_connect_when_one_sends_first() {
    let mut pair = Pair::unknown_peers(key(1), key(1), 1_500);
    pair.tap.sent_by_a();
    pair.tap.sent_by_b();
    std::thread::sleep(std::time::Duration::from_millis(10));
    let sent = pair.sealed([1], 0);
    pair.deliver(&sent);
    pair.connect();
}

#[test]
fn a_new_incarnation_of_a_peer_is_adopted_and_its_messages_arrive() {
    let mut pair = Pair::connected(1_500);
    restart_a(&mut pair);
    pair.connect();
    let sent = pair.sealed([1, 2], 8);
    pair.deliver(&sent);
    assert_eq!(pair.numbers(), [1, 2]);
}

#[test]
fn messages_of_a_former_incarnation_are_dropped_once_the_next_one_is_known() {
    let mut pair = Pair::connected(1_500);
    let former = pair.sealed([1], 8);
    restart_a(&mut pair);
    pair.connect();
    let before = dropped(&pair.b, Cause::OtherIncarnation);
    pair.deliver(&former);
    assert_eq!(pair.numbers(), []);
    assert_eq!(dropped(&pair.b, Cause::OtherIncarnation), before + 1);
}

#[test]
fn messages_for_a_former_incarnation_are_dropped_and_lead_to_a_new_session() {
    let mut pair = Pair::connected(1_500);
    let former = pair.sealed([1], 8);
    let b = UdpTransport::bind(&config(B, &[(A, pair.tap.for_b())], key(1), 1_500)).expect("B");
    pair.b = b;
    // Its first greetings are lost.
    pair.tap.sent_by_b();
    std::thread::sleep(std::time::Duration::from_millis(10));
    pair.deliver(&former);
    assert_eq!(dropped(&pair.b, Cause::OtherIncarnation), 1);
    assert!(!pair.b.is_connected(A));
    pair.connect();
    let sent = pair.sealed([2], 8);
    pair.deliver(&sent);
    assert_eq!(pair.numbers(), [2]);
}

#[test]
fn greetings_and_messages_of_a_former_incarnation_change_nothing_when_they_are_sent_again() {
    let tap = Tap::new();
    let a = UdpTransport::bind(&config(A, &[(B, tap.for_a())], key(1), 1_500)).expect("A");
    let b = UdpTransport::bind(&config(B, &[(A, tap.for_b())], key(1), 1_500)).expect("B");
    let mut pair = Pair { a, b, tap, got_a: Vec::new(), got_b: Vec::new() };
    // Everything that A says in its first incarnation, answers to B's challenges included.
    let mut recorded = pair.record_until(|pair| pair.a.is_connected(B) && pair.b.is_connected(A));
    let sent = pair.sealed([1], 8);
    pair.deliver(&sent);
    recorded.extend(sent);
    assert_eq!(pair.numbers(), [1]);
    assert!(recorded.len() >= 3, "greetings and a message");

    // B has not been restarted: its session is the one that the recorded greetings answer.
    restart_a(&mut pair);
    pair.connect();
    for _ in 0..3 {
        pair.deliver(&recorded);
    }
    assert_eq!(pair.numbers(), [], "the recorded message");
    let sent = pair.sealed([2], 8);
    pair.deliver(&sent);
    assert_eq!(pair.numbers(), [2], "the session of the second incarnation is still the present one");
}

#[test]
fn recorded_greetings_of_the_present_incarnation_do_not_open_the_window_again() {
    let mut pair = Pair::unknown_peers(key(1), key(1), 1_500);
    let recorded = pair.record_until(|pair| pair.a.is_connected(B) && pair.b.is_connected(A));
    let sent = pair.sealed([1], 8);
    pair.deliver(&sent);
    pair.deliver(&recorded);
    pair.deliver(&sent);
    assert_eq!(pair.numbers(), [1]);
}

#[test]
fn a_session_that_comes_back_accepts_nothing_twice() {
    // Two processes take themselves for A. (Observers may do so.)
    let mut pair = Pair::connected(1_500);
    let sent = pair.sealed([1], 8);
    pair.deliver(&sent);
    let other = UdpTransport::bind(&config(A, &[(B, pair.tap.for_a())], key(1), 1_500)).expect("A");
    let first = std::mem::replace(&mut pair.a, other);
    pair.connect();
    pair.a = first;
    // B says that it does not know this session, and is told.
    let start = Instant::now();
    while pair.got_b.is_empty() {
        let newer = pair.sealed([2], 8);
        pair.deliver(&newer);
        while pair.pass_all() {}
        assert!(start.elapsed() < TIMEOUT, "the session does not come back");
    }
    pair.got_b.clear();
    pair.deliver(&sent);
    assert_eq!(pair.numbers(), []);
    assert_eq!(dropped(&pair.b, Cause::Replayed), 1);
}

#[test]
fn pieces_of_a_former_incarnation_do_not_complete_a_message() {
    let mut pair = Pair::connected(1_500);
    let pieces = pair.sealed([1], 1_024);
    assert!(pieces.len() > 2);
    pair.deliver(&pieces[..pieces.len() - 1]);
    restart_a(&mut pair);
    pair.connect();
    assert_eq!(dropped(&pair.b, Cause::Incomplete), 1);
    pair.deliver(&pieces[pieces.len() - 1..]);
    assert_eq!(pair.numbers(), []);
}

#[test]
fn two_observers_at_a_time_both_get_answers() {
    let switch = UdpTransport::bind(&config(PeerId::SWITCH, &[], key(1), 1_500)).expect("the switch");
    let told = config(PeerId::OBSERVER, &[(PeerId::SWITCH, switch.address().expect("bound"))], key(1), 1_500);
    let observers = [(); 2].map(|()| UdpTransport::bind(&told).expect("an observer"));
    let (mut out, mut answered, start) = (Outgoing::new(), [0; 2], Instant::now());
    while answered.iter().any(|&answers| answers < 3) {
        for (observer, answered) in observers.iter().zip(&mut answered) {
            observer.send(PeerId::SWITCH, Body::Control(b"status?"), &mut out);
            observer.flush(&mut out);
            let mut questions = Vec::new();
            receive(&switch, &mut questions);
            for _ in questions {
                switch.send(PeerId::OBSERVER, Body::Control(b"fine"), &mut out);
            }
            switch.flush(&mut out);
            let mut answers = Vec::new();
            receive(observer, &mut answers);
            *answered += answers.len();
        }
        assert!(start.elapsed() < TIMEOUT, "{answered:?}");
    }
}

#[test]
fn a_counter_is_never_used_twice_though_sessions_end() {
    let mut pair = Pair::connected(1_500);
    let mut counters = Vec::new();
    for number in 0..3 {
        let sent = pair.sealed([number], 0);
        counters.extend(sent.iter().map(|bytes| bytes[8..16].to_vec()));
        let b = UdpTransport::bind(&config(B, &[(A, pair.tap.for_b())], key(1), 1_500)).expect("B");
        pair.b = b;
        pair.connect();
    }
    counters.dedup();
    assert_eq!(counters.len(), 3);
    assert!(counters.is_sorted_by_key(|bytes| u64::from_le_bytes(bytes[..].try_into().expect("8 bytes"))));
}
