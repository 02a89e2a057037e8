//! How messages travel in datagrams. That they arrive as they were sent is what every transport must do
//! (`udp_conformance.rs`).

use crate::tapped;

use tapped::{A, B, BLOCK, Message, Pair, dropped, key, packet, refused};
use transport::{Body, Cause, Contents, Outgoing, Transport};

#[test]
fn zeroes_and_empty_messages_travel_as_what_they_are_and_a_burst_keeps_its_order() {
    let mut pair = Pair::connected(1_280);
    let mut out = Outgoing::new();
    let before = pair.a.counters().counts().sent_bytes;
    for body in [Body::Packet(&packet(4, 8192), Contents::Zeroes(65_536)), Body::Control(&[])] {
        pair.a.send(B, body, &mut out);
    }
    pair.a.flush(&mut out);
    assert!(out.is_empty());
    while pair.pass_all() {}
    let expected = [(A, Message::Zeroes(packet(4, 8192), 65_536)), (A, Message::Control(vec![]))];
    assert_eq!(pair.got_b, expected);
    assert!(pair.a.counters().counts().sent_bytes - before < 1_000, "zeroes are not carried");
    assert_eq!(refused(&pair.b), 0);
}

#[test]
fn a_mebibyte_crosses_a_path_of_1280_bytes() {
    let mut pair = Pair::connected(1_280);
    let words = BLOCK as usize / 8;
    let datagrams = pair.sealed([1], words);
    assert!(datagrams.len() > 890 && datagrams.iter().all(|bytes| bytes.len() <= 1_280 - 28));
    pair.deliver(&datagrams);
    assert_eq!(pair.numbers(), [1]);
}

#[test]
fn small_messages_of_a_burst_share_datagrams() {
    let mut pair = Pair::connected(1_500);
    let datagrams = pair.sealed(0..100, 0);
    assert_eq!(datagrams.len(), 6, "19 packets of 72 bytes fit in 1,472 - 48");
    pair.deliver(&datagrams);
    assert_eq!(pair.numbers(), (0..100).collect::<Vec<_>>());
}

#[test]
fn messages_to_a_peer_without_a_session_are_dropped_and_counted_and_it_is_asked() {
    let pair = Pair::unknown_peers(key(1), key(1), 1_500);
    pair.tap.sent_by_a();
    std::thread::sleep(std::time::Duration::from_millis(10));
    assert_eq!(pair.sealed(0..3, 4).len(), 1, "one greeting");
    assert_eq!(dropped(&pair.a, Cause::Unreachable), 3);
    assert_eq!(pair.a.counters().counts().sent, 0);
}

#[test]
fn messages_to_a_peer_that_is_not_configured_are_dropped_and_counted() {
    let pair = Pair::connected(1_500);
    let mut out = Outgoing::new();
    pair.a.send(transport::PeerId::SWITCH, Body::Control(b"is anybody there"), &mut out);
    assert!(out.is_empty());
    assert_eq!(dropped(&pair.a, Cause::Unreachable), 1);
}
