//! What is sent arrives as it was sent: over UDP, for every kind of message and every way to travel.

mod tapped;

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use tapped::{A, B, BLOCK, Message, PATIENCE, Pair, config, dropped, key, packet, payload, receive, refused};
use transport::udp::UdpTransport;
use transport::{Body, Cause, Contents, MOST_CONTROL, Outgoing, Transport};

#[test]
fn every_kind_of_message_arrives_as_it_was_sent() {
    for mtu in [1_280, 1_500, 65_535] {
        for (key_a, key_b) in [(key(1), key(1)), (None, None)] {
            let mut pair = Pair::strangers(key_a, key_b, mtu);
            pair.connect();
            let mut out = Outgoing::new();
            let words = payload(3, 512);
            let shared: Vec<AtomicU64> = words.iter().map(|&word| AtomicU64::new(word)).collect();
            let control: Vec<u8> = (0..MOST_CONTROL).map(|at| at as u8).collect();
            let bodies = [
                (Body::Packet(&packet(1, 0), Contents::None), Message::Packet(packet(1, 0), vec![])),
                (Body::Packet(&packet(2, 1), Contents::Own(&[7])), Message::Packet(packet(2, 1), vec![7])),
                (
                    Body::Packet(&packet(3, 512), Contents::Shared(&shared)),
                    Message::Packet(packet(3, 512), words),
                ),
                (
                    Body::Packet(&packet(4, 8192), Contents::Zeroes(65_536)),
                    Message::Zeroes(packet(4, 8192), 65_536),
                ),
                (Body::Control(&[]), Message::Control(vec![])),
                (Body::Control(&control[..13]), Message::Control(control[..13].to_vec())),
                (Body::Control(&control), Message::Control(control.clone())),
            ];
            for (body, _) in &bodies {
                pair.a.send(B, *body, &mut out);
            }
            pair.a.flush(&mut out);
            assert!(out.is_empty());
            while pair.pass_all() {}
            let expected: Vec<_> = bodies.into_iter().map(|(_, message)| (A, message)).collect();
            assert_eq!(pair.got_b, expected, "mtu {mtu}");
            assert_eq!(pair.a.counters().counts().sent, 7);
            assert_eq!(refused(&pair.b), 0);
        }
    }
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
fn the_contents_may_change_after_send() {
    let mut pair = Pair::connected(65_535);
    let mut out = Outgoing::new();
    let mut words = payload(1, 16);
    pair.a.send(B, Body::Packet(&packet(1, 16), Contents::Own(&words)), &mut out);
    words.fill(0);
    pair.a.flush(&mut out);
    pair.pass_all();
    assert_eq!(pair.numbers(), [1]);
}

#[test]
fn messages_to_a_place_without_a_session_are_dropped_and_counted_and_it_is_asked() {
    let pair = Pair::strangers(key(1), key(1), 1_500);
    pair.tap.sent_by_a();
    std::thread::sleep(std::time::Duration::from_millis(10));
    assert_eq!(pair.sealed(0..3, 4).len(), 1, "one greeting");
    assert_eq!(dropped(&pair.a, Cause::Unreachable), 3);
    assert_eq!(pair.a.counters().counts().sent, 0);
}

#[test]
fn messages_to_a_place_that_is_not_configured_are_dropped_and_counted() {
    let pair = Pair::connected(1_500);
    let mut out = Outgoing::new();
    pair.a.send(transport::PlaceId::SWITCH, Body::Control(b"is anybody there"), &mut out);
    assert!(out.is_empty());
    assert_eq!(dropped(&pair.a, Cause::Unreachable), 1);
}

#[test]
fn threads_send_at_the_same_time() {
    let a = UdpTransport::bind(&config(A, &[], key(1), 1_500)).expect("A");
    let b = UdpTransport::bind(&config(B, &[(A, a.address().expect("bound"))], key(1), 1_500)).expect("B");
    // A does not know B's address beforehand: A only answers, so it is told in a second life.
    let address = a.address().expect("bound");
    drop(a);
    let mut told = config(A, &[(B, b.address().expect("bound"))], key(1), 1_500);
    told.listen = address;
    let a = UdpTransport::bind(&told).expect("A");
    let (mut got_a, mut got_b) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while !(a.is_connected(B) && b.is_connected(A)) {
        receive(&a, &mut got_a);
        receive(&b, &mut got_b);
        assert!(start.elapsed() < PATIENCE, "no connection");
    }
    let (threads, each) = (4, 500);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let a = &a;
            scope.spawn(move || {
                let mut out = Outgoing::new();
                for number in 0..each {
                    let number = thread * 1_000 + number;
                    let words = payload(number, 300);
                    a.send(B, Body::Packet(&packet(number, 300), Contents::Own(&words)), &mut out);
                    a.flush(&mut out);
                    std::thread::yield_now();
                }
            });
        }
        while (got_b.len() as u64) < threads * each {
            receive(&b, &mut got_b);
            assert!(start.elapsed() < PATIENCE, "{} of {}", got_b.len(), threads * each);
        }
    });
    let mut numbers: Vec<u64> = got_b
        .iter()
        .map(|(_, message)| match message {
            Message::Packet(got, words) if *words == payload(got.seq.0, 300) => got.seq.0,
            other => panic!("{other:?}"),
        })
        .collect();
    numbers.sort_unstable();
    let expected: Vec<u64> = (0..threads).flat_map(|thread| thread * 1_000..thread * 1_000 + each).collect();
    assert_eq!(numbers, expected);
}
