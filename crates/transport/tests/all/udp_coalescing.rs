//! Messages that nobody waits for travel with the next one to the same peer, and do not get lost where there is none.
//!
//! Whether one is kept depends on how quickly others have followed lately, and so on the machine: each test sends until one is. From then on
//! nothing depends on time but what waits for it.

use crate::tapped;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use tapped::{A, B, Message, Pair, TIMEOUT, config, key, packet, payload};
use transport::udp::{self, UdpConfig, UdpTransport};
use transport::{Body, Contents, Outgoing, PeerId, Transport};
use wire::coherence::PacketKind;
use wire::{Endpoint, Nanos, NodeId, Packet};

/// Longer than anything is kept.
const LONG: Duration = Duration::from_millis(2);

/// One that nobody waits for.
fn unlock(number: u64) -> Packet {
    Packet { kind: PacketKind::Unlock, to: Endpoint::Switch, ..packet(number, 0) }
}

/// Its acknowledgement.
fn unlock_ack(number: u64) -> Packet {
    Packet { kind: PacketKind::UnlockAck, to: Endpoint::Requester(NodeId(1)), ..packet(number, 0) }
}

fn send(pair: &Pair, packet: &Packet) {
    let words = payload(packet.seq.0, packet.payload as usize / 8);
    let contents = if words.is_empty() { Contents::None } else { Contents::Own(&words) };
    let mut out = Outgoing::new();
    pair.a.send(B, Body::Packet(packet, contents), &mut out);
    pair.a.flush(&mut out);
    assert!(out.is_empty());
}

fn sent(pair: &Pair) -> u64 {
    pair.a.counters().counts().sent
}

/// A attends, and sends in turns what somebody waits for and what nobody waits for, until it keeps one. Returns its number,
/// and how many had been sent before it.
fn keep_one(pair: &Pair) -> (u64, u64) {
    pair.a.attend();
    let start = Instant::now();
    for number in 0.. {
        assert!(start.elapsed() < TIMEOUT, "nothing is kept");
        send(pair, &packet(number, 0));
        let before = sent(pair);
        send(pair, &unlock(number));
        if sent(pair) == before {
            pair.tap.sent_by_a();
            return (number, before);
        }
    }
    unreachable!("that was for ever")
}

fn packets(pair: &Pair) -> Vec<Packet> {
    let packet = |(_, message): &(_, Message)| match message {
        Message::Packet(packet, _) => *packet,
        other => panic!("{other:?}"),
    };
    pair.got_b.iter().map(packet).collect()
}

#[test]
fn what_nobody_waits_for_travels_in_front_of_the_next_message_in_its_datagram() {
    let mut pair = Pair::connected(1_500);
    let (number, _) = keep_one(&pair);
    send(&pair, &packet(number + 1, 0));
    let datagrams = pair.tap.sent_by_a();
    assert_eq!(datagrams.len(), 1);
    pair.deliver(&datagrams);
    assert_eq!(packets(&pair), [unlock(number), packet(number + 1, 0)]);
}

#[test]
fn it_goes_in_a_datagram_of_its_own_in_front_of_one_that_has_no_room() {
    let mut pair = Pair::connected(1_500);
    let (number, _) = keep_one(&pair);
    let long = packet(number + 1, 165);
    send(&pair, &long);
    let datagrams = pair.tap.sent_by_a();
    assert_eq!(datagrams.len(), 2);
    pair.deliver(&datagrams);
    assert_eq!(packets(&pair), [unlock(number), long]);
}

#[test]
fn several_travel_together_but_not_too_many() {
    let mut pair = Pair::connected(1_500);
    let (first, _) = keep_one(&pair);
    let before = sent(&pair);
    let last = (first + 1..).find(|&number| {
        send(&pair, &unlock(number));
        sent(&pair) > before
    });
    let last = last.expect("numbers do not end");
    assert!(last - first <= 8, "{} are kept", last - first);
    let datagrams = pair.tap.sent_by_a();
    assert_eq!(datagrams.len(), 1);
    pair.deliver(&datagrams);
    assert_eq!(packets(&pair), (first..=last).map(unlock).collect::<Vec<_>>());
}

#[test]
fn an_acknowledgement_of_an_unlock_is_never_kept_and_takes_along_what_is() {
    let mut pair = Pair::connected(1_500);
    // Others have followed quickly lately: whatever may wait does.
    let (number, before) = keep_one(&pair);
    send(&pair, &unlock_ack(number));
    assert_eq!(sent(&pair), before + 2);
    for next in number + 1..number + 500 {
        send(&pair, &packet(next, 0));
        let before = sent(&pair);
        send(&pair, &unlock_ack(next));
        assert_eq!(sent(&pair), before + 1, "its slot's next event but one would wait for it");
    }
    let datagrams = pair.tap.sent_by_a();
    pair.deliver(&datagrams[..1]);
    assert_eq!(packets(&pair), [unlock(number), unlock_ack(number)]);
}

#[test]
fn it_leaves_when_somebody_looks_for_messages_after_a_while_and_then_nothing_is_kept_for_a_time() {
    let pair = Pair::connected(1_500);
    let (number, _) = keep_one(&pair);
    let before = sent(&pair);
    std::thread::sleep(LONG);
    pair.a.receive(&mut |_, _| {});
    assert_eq!(sent(&pair), before + 1);
    send(&pair, &unlock(number + 1));
    assert_eq!(sent(&pair), before + 2, "the last one was kept in vain");
}

#[test]
fn a_thread_that_blocks_does_so_for_no_longer_than_something_may_be_kept() {
    let pair = Pair::connected(1_500);
    keep_one(&pair);
    let before = sent(&pair);
    std::thread::scope(|scope| {
        // Nothing comes that would end its sleep before it has let the message go.
        let blocked = scope.spawn(|| {
            while sent(&pair) == before {
                pair.a.block(Nanos::from_millis(60_000));
                pair.a.receive(&mut |_, _| {});
            }
        });
        let start = Instant::now();
        while sent(&pair) == before {
            assert!(start.elapsed() < TIMEOUT, "it sleeps over it");
            std::thread::yield_now();
        }
        while !blocked.is_finished() {
            pair.a.interrupt();
            std::thread::yield_now();
        }
    });
}

#[test]
fn whoever_leaves_last_takes_it_along_if_nobody_else_looks() {
    let pair = Pair::connected(1_500);
    keep_one(&pair);
    let before = sent(&pair);
    pair.a.leave();
    assert_eq!(sent(&pair), before + 1);
}

#[test]
fn the_thread_that_waits_lets_it_go_when_all_others_have_left() {
    let (pair, over) = (Pair::connected(1_500), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            while !over.load(SeqCst) {
                pair.a.wait(Nanos::from_millis(50));
                pair.a.receive(&mut |_, _| {});
            }
        });
        // Some are kept before it naps, and leave with the last one who attends; in most rounds it naps.
        for _ in 0..20 {
            let before = keep_one(&pair).1;
            pair.a.leave();
            let start = Instant::now();
            while sent(&pair) == before {
                assert!(start.elapsed() < TIMEOUT, "it is kept for ever");
                std::thread::yield_now();
            }
        }
        over.store(true, SeqCst);
        waiting.join().expect("it waits");
    });
}

#[test]
fn it_leaves_with_the_last_breath() {
    let mut pair = Pair::connected(1_500);
    let (number, _) = keep_one(&pair);
    let fresh = Pair::unknown_peers(None, None, 1_500).a;
    drop(std::mem::replace(&mut pair.a, fresh));
    let datagrams = pair.tap.sent_by_a();
    pair.deliver(&datagrams);
    assert_eq!(packets(&pair), [unlock(number)]);
}

#[test]
fn where_nobody_attends_nothing_is_kept() {
    let pair = Pair::connected(1_500);
    for number in 0..500 {
        let before = sent(&pair);
        send(&pair, &packet(number, 0));
        send(&pair, &unlock(number));
        assert_eq!(sent(&pair), before + 2);
    }
}

#[test]
fn where_it_is_not_wanted_nothing_is_kept() {
    let mut pair = Pair::unknown_peers(key(1), key(1), 1_500);
    pair.a = UdpTransport::bind(&UdpConfig {
        coalescing: false,
        ..config(A, &[(B, pair.tap.for_a())], key(1), 1_500)
    })
    .expect("A");
    pair.connect();
    pair.a.attend();
    for number in 0..500 {
        let before = sent(&pair);
        send(&pair, &packet(number, 0));
        send(&pair, &unlock(number));
        assert_eq!(sent(&pair), before + 2);
    }
}

/// A node, and a switch that may have a program at its ports.
fn node_and_switch() -> [UdpTransport; 2] {
    let addresses = udp::unused_addresses(2).expect("loopback has some");
    let open = |me: usize| {
        let (mine, other) = ([A, PeerId::SWITCH][me], [PeerId::SWITCH, A][me]);
        let peers = [(other, addresses[1 - me])];
        let config = config(mine, &peers, key(1), 1_500);
        UdpTransport::bind(&UdpConfig { listen: addresses[me], singles: true, ..config }).expect("a peer")
    };
    let both = [open(0), open(1)];
    let start = Instant::now();
    while !both[0].is_connected(PeerId::SWITCH) || !both[1].is_connected(A) {
        assert!(start.elapsed() < TIMEOUT, "they do not find each other");
        for one in &both {
            one.receive(&mut |_, _| {});
        }
    }
    both
}

#[test]
fn single_packets_that_can_wait_leave_in_front_of_the_next_one_each_in_its_datagram() {
    let [node, switch] = node_and_switch();
    let send = |packet: &Packet| {
        let (before, mut out) = (node.counters().counts(), Outgoing::new());
        node.send(PeerId::SWITCH, Body::Packet(packet, Contents::None), &mut out);
        node.flush(&mut out);
        let after = node.counters().counts();
        (after.sent - before.sent, after.sent_bytes - before.sent_bytes)
    };
    let to_switch = |number| Packet { to: Endpoint::Switch, ..packet(number, 0) };
    node.attend();
    let start = Instant::now();
    let last = (0..).find(|&number| {
        assert!(start.elapsed() < TIMEOUT, "nothing is kept");
        let (sent, bytes) = send(&to_switch(number));
        let kept = send(&unlock(number)) == (0, 0);
        assert!(sent >= 1 && bytes.is_multiple_of(32 + 64 + 16), "each is a datagram: {sent} of {bytes}");
        switch.receive(&mut |_, _| {});
        kept
    });
    let last = last.expect("numbers do not end");
    assert_eq!(send(&to_switch(last + 1)), (2, 2 * (32 + 64 + 16)));
    let mut got = Vec::new();
    while got.last().is_none_or(|packet: &Packet| packet.seq.0 != last + 1) {
        assert!(start.elapsed() < TIMEOUT, "it does not come");
        switch.receive(&mut |_, body| {
            if let Body::Packet(packet, _) = body {
                got.push(*packet);
            }
        });
    }
    assert!(got.ends_with(&[unlock(last), to_switch(last + 1)]), "{got:?}");
}
