//! Peers that do not agree: each refuses the other one, both can say why, and whoever is connected already does not notice.
#![cfg(target_os = "linux")]

use crate::tapped;

use std::time::{Duration, Instant};

use tapped::{A, B, Pair, TIMEOUT, Tap, config, dropped, key};
use transport::udp::{UdpConfig, UdpTransport};
use transport::{Cause, Difference, PeerId, Reason, Terms, Transport as _, WIRE_VERSION};

fn terms(block: &str) -> Terms {
    Terms::new([("name", "lab"), ("block", block)])
}

fn differs(ours: &str, theirs: &str) -> Option<Reason> {
    let one = Difference { field: "block".into(), ours: ours.into(), theirs: theirs.into() };
    Some(Reason::Settings(vec![one]))
}

fn reason(of: &UdpTransport, peer: PeerId) -> Option<Reason> {
    of.handshakes().expect("UDP has them").refusal(peer).map(|refusal| refusal.reason)
}

/// Passes on what there is, each datagram as `change` leaves it, until both have a reason to refuse the other one.
fn until_both_refuse(pair: &mut Pair, change: impl Fn(&mut Vec<u8>)) {
    let start = Instant::now();
    while reason(&pair.a, B).is_none() || reason(&pair.b, A).is_none() {
        for mut bytes in pair.tap.sent_by_a() {
            change(&mut bytes);
            pair.tap.to_b(&pair.b, &bytes);
        }
        for mut bytes in pair.tap.sent_by_b() {
            change(&mut bytes);
            pair.tap.to_a(&pair.a, &bytes);
        }
        pair.receive();
        assert!(start.elapsed() < TIMEOUT, "{:?} {:?}", reason(&pair.a, B), reason(&pair.b, A));
    }
    assert!(!pair.a.is_connected(B) && !pair.b.is_connected(A));
}

#[test]
fn peers_with_different_settings_refuse_each_other_and_both_name_the_setting_with_both_values() {
    for rack in [key(1), None] {
        let mut pair = Pair::of((rack.clone(), terms("4 KiB")), (rack.clone(), terms("8 KiB")), 1_500);
        until_both_refuse(&mut pair, |_| {});
        assert_eq!(reason(&pair.a, B), differs("4 KiB", "8 KiB"));
        assert_eq!(reason(&pair.b, A), differs("8 KiB", "4 KiB"));
        assert!(dropped(&pair.a, Cause::Refused) > 0 && dropped(&pair.b, Cause::Refused) > 0);
        // Restarted with the same settings, B lets it in, and has nothing to say any more.
        let again = UdpConfig { terms: terms("8 KiB"), ..config(A, &[(B, pair.tap.for_a())], rack, 1_500) };
        pair.a = UdpTransport::bind(&again).expect("A");
        pair.connect();
        assert_eq!(reason(&pair.b, A), None);
    }
}

#[test]
fn peers_of_different_versions_refuse_each_other_and_both_name_both_versions() {
    for theirs in [WIRE_VERSION - 1, WIRE_VERSION + 1, u8::MAX] {
        let mut pair = Pair::unknown_peers(None, None, 1_500);
        until_both_refuse(&mut pair, |bytes| {
            bytes[2] = theirs;
            // What another version says behind the front is its own business.
            bytes.truncate(32 + 64);
            bytes.extend([0xee; 16]);
        });
        let expected = Some(Reason::Version { ours: WIRE_VERSION, theirs });
        assert_eq!((reason(&pair.a, B), reason(&pair.b, A)), (expected.clone(), expected));
    }
}

#[test]
fn peers_with_different_keys_refuse_each_other_and_say_where_the_greeting_came_from() {
    for (one, other) in [(key(1), key(2)), (key(1), None)] {
        let mut pair = Pair::of((one, terms("4 KiB")), (other, terms("8 KiB")), 1_500);
        until_both_refuse(&mut pair, |_| {});
        // Nothing else is said of what nobody has authenticated.
        assert_eq!((reason(&pair.a, B), reason(&pair.b, A)), (Some(Reason::Key), Some(Reason::Key)));
        let refusal = pair.a.handshakes().expect("UDP").refusal(B).expect("refused");
        assert_eq!(refusal.address, pair.tap.for_a().to_string());
    }
}

#[test]
fn a_peer_that_starts_later_hears_of_another_key_too() {
    let mut pair = Pair::unknown_peers(key(1), key(2), 1_500);
    // What was said before it started is lost.
    pair.tap.sent_by_a();
    pair.tap.sent_by_b();
    let late = config(A, &[(B, pair.tap.for_a())], key(1), 1_500);
    pair.a = UdpTransport::bind(&late).expect("A");
    until_both_refuse(&mut pair, |_| {});
}

#[test]
fn peers_that_refuse_each_other_exchange_few_greetings() {
    for (one, other) in [(key(1), key(2)), (key(1), key(1))] {
        let mut pair = Pair::of((one, terms("4 KiB")), (other, terms("8 KiB")), 1_500);
        let (start, mut datagrams) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(1) {
            for bytes in pair.tap.sent_by_a() {
                pair.tap.to_b(&pair.b, &bytes);
                datagrams += 1;
            }
            for bytes in pair.tap.sent_by_b() {
                pair.tap.to_a(&pair.a, &bytes);
                datagrams += 1;
            }
            pair.receive();
        }
        // One every 100 ms from each, and those at the start.
        assert!(datagrams <= 2 * 11 + 4, "{datagrams} in a second");
    }
}

#[test]
fn a_recorded_greeting_with_other_settings_is_not_believed() {
    let mut pair = Pair::of((key(1), terms("4 KiB")), (key(1), terms("8 KiB")), 1_500);
    let recorded = pair.record_until(|pair| reason(&pair.b, A).is_some());
    let again = UdpConfig { terms: terms("8 KiB"), ..config(A, &[(B, pair.tap.for_a())], key(1), 1_500) };
    pair.a = UdpTransport::bind(&again).expect("A");
    pair.connect();
    for _ in 0..3 {
        pair.deliver(&recorded);
    }
    assert_eq!(reason(&pair.b, A), None, "it has other settings by now");
    let sent = pair.sealed([1], 8);
    pair.deliver(&sent);
    assert_eq!(pair.numbers(), [1], "the session stands");
}

#[test]
fn a_connection_stands_while_others_greet_in_its_peer_s_name() {
    for rack in [key(1), None] {
        let mut pair = Pair::unknown_peers(rack.clone(), rack.clone(), 1_500);
        pair.connect();
        // Who says to be A: with other settings, without the key, of another version, cut short, damaged.
        let tap = Tap::new();
        let mut greetings = Vec::new();
        for (rack, terms) in [(rack.clone(), terms("8 KiB")), (key(2), Terms::default()), (None, terms("1"))]
        {
            let told = UdpConfig { terms, ..config(A, &[(B, tap.for_a())], rack, 1_500) };
            let byzantine = UdpTransport::bind(&told).expect("a Byzantine peer");
            let greeting = tap.sent_by_a().remove(0);
            greetings.extend((0..greeting.len()).step_by(7).map(|length| greeting[..length].to_vec()));
            greetings.extend((0..greeting.len()).step_by(5).map(|at| {
                let mut damaged = greeting.clone();
                damaged[at] ^= 0x55;
                damaged
            }));
            greetings.push(greeting);
            drop(byzantine);
        }
        let before = dropped(&pair.b, Cause::OtherIncarnation);
        pair.deliver(&greetings);
        assert!(pair.a.is_connected(B) && pair.b.is_connected(A));
        let sent = pair.sealed([1, 2], 8);
        pair.deliver(&sent);
        assert_eq!(pair.numbers(), [1, 2]);
        assert_eq!(dropped(&pair.b, Cause::OtherIncarnation), before);
    }
}
