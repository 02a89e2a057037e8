//! Peers that are known by name, or that say themselves where they are: lookups that fail, wait, and change; and who is
//! believed.
#![cfg(target_os = "linux")]

use crate::tapped;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tapped::{A, B, TIMEOUT, config, key, loopback, receive};
use transport::udp::{Advertised, Key, Lookup, UdpConfig, UdpTransport};
use transport::{Body, Outgoing, PeerId, Transport};
use wire::NodeId;

const C: PeerId = PeerId::node(NodeId(2));

/// What a name leads to, as a test says.
#[derive(Clone, Default)]
struct Names {
    leads_to: Arc<Mutex<Vec<SocketAddr>>>,
    lookups: Arc<AtomicUsize>,
}

impl Names {
    fn lead_to(&self, addresses: &[SocketAddr]) {
        *self.leads_to.lock().expect("no panic") = addresses.to_vec();
    }

    fn lookup(&self) -> Lookup {
        let this = self.clone();
        Lookup::by(move |host, port| {
            assert_eq!((host, port), ("b.rack", 7400));
            this.lookups.fetch_add(1, SeqCst);
            let found = this.leads_to.lock().expect("no panic").clone();
            if found.is_empty() { Err(io::Error::other("no such host")) } else { Ok(found) }
        })
    }
}

fn named() -> Advertised {
    Advertised::parse("b.rack:7400", "rack.toml:9").expect("a name")
}

/// A, which knows B by name.
fn a(names: &Names, key: Option<Key>) -> UdpTransport {
    let mut config = config(A, &[], key, 1_500);
    config.peers.push((B, named()));
    config.naming.lookup = names.lookup();
    UdpTransport::bind(&config).expect("A")
}

fn bound(config: &UdpConfig) -> UdpTransport {
    UdpTransport::bind(config).expect("bound")
}

fn address(transport: &UdpTransport) -> SocketAddr {
    transport.address().expect("bound")
}

/// An address at which nobody is, and that nobody is given while the test runs.
fn nowhere() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind(loopback()).expect("loopback");
    let address = socket.local_addr().expect("bound");
    (socket, address)
}

fn say(from: &UdpTransport, to: PeerId, what: &[u8]) {
    let mut out = Outgoing::new();
    from.send(to, Body::Control(what), &mut out);
    from.flush(&mut out);
}

/// Sends from one to the other until it arrives, while all receive.
fn until_heard(from: &UdpTransport, to: &UdpTransport, others: &[&UdpTransport]) {
    let start = Instant::now();
    let mut got = Vec::new();
    while !got.iter().any(|(by, _)| *by == from.me()) {
        say(from, to.me(), b"hello");
        for _ in 0..10 {
            receive(to, &mut got);
            for other in others.iter().chain([&from]) {
                receive(other, &mut Vec::new());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(start.elapsed() < TIMEOUT, "nothing arrives from {:?} at {:?}", from.me(), to.me());
    }
}

#[test]
fn a_name_that_leads_nowhere_yet_is_said_with_where_it_stands_and_waited_for() {
    let names = Names::default();
    let a = a(&names, key(1));
    let start = Instant::now();
    let said = loop {
        if let Some(said) = a.hindrance() {
            break said;
        }
        assert!(start.elapsed() < TIMEOUT, "nothing is said");
    };
    assert_eq!(
        said,
        "`advertise` of node 1 is b.rack:7400 (rack.toml:9), which cannot be looked up here: no such host; correct it, or \
         make the name known to this machine (DNS, or its file of hosts)"
    );
    let b = bound(&config(B, &[(A, address(&a))], key(1), 1_500));
    names.lead_to(&[address(&b)]);
    until_heard(&a, &b, &[]);
    while a.hindrance().is_some() {
        assert!(start.elapsed() < TIMEOUT, "it is not looked up again");
    }
}

#[test]
fn a_peer_that_comes_back_elsewhere_is_looked_up_and_found() {
    let names = Names::default();
    let a = a(&names, key(1));
    for _ in 0..2 {
        let b = bound(&config(B, &[(A, address(&a))], key(1), 1_500));
        names.lead_to(&[address(&b)]);
        until_heard(&a, &b, &[]);
        until_heard(&b, &a, &[]);
    }
}

#[test]
fn of_several_addresses_the_one_that_answers_is_used() {
    let names = Names::default();
    let (_taken, nowhere) = nowhere();
    let a = a(&names, key(1));
    let b = bound(&config(B, &[(A, address(&a))], key(1), 1_500));
    let of_the_other_kind = "[2001:db8::1]:7400".parse().expect("an address");
    names.lead_to(&[of_the_other_kind, nowhere, address(&b)]);
    until_heard(&a, &b, &[]);
}

#[test]
fn a_name_is_looked_up_at_most_once_a_second_however_much_is_sent() {
    let names = Names::default();
    let start = Instant::now();
    let a = a(&names, key(1));
    while start.elapsed() < Duration::from_millis(2_300) {
        say(&a, B, b"hello");
    }
    let lookups = names.lookups.load(SeqCst);
    assert!((1..=3).contains(&lookups), "{lookups} lookups in 2.3 s");
}

#[test]
fn nobody_waits_for_a_lookup() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let b = bound(&config(B, &[], key(1), 1_500));
    let mut told = config(A, &[(C, loopback())], key(1), 1_500);
    let (open, target) = (Arc::clone(&gate), address(&b));
    told.peers.push((B, named()));
    told.naming.lookup = Lookup::by(move |_, _| {
        let opened = open.1.wait_while(open.0.lock().expect("no panic"), |open| !*open);
        drop(opened.expect("no panic"));
        Ok(vec![target])
    });
    let (c_taken, c_address) = nowhere();
    told.peers[0].1 = c_address.into();
    let a = bound(&told);
    drop(c_taken);
    let mut c = config(C, &[(A, address(&a))], key(1), 1_500);
    c.listen = c_address;
    let c = bound(&c);
    // The lookup hangs all the time.
    say(&a, B, b"hello");
    until_heard(&a, &c, &[]);
    until_heard(&c, &a, &[]);
    drop((a, c));
    // Nor for its end.
    *gate.0.lock().expect("no panic") = true;
    gate.1.notify_all();
}

#[test]
fn who_says_where_it_is_reached_is_reached_there_by_all_and_the_switch_tells_them() {
    // The rack file says of both nodes that they are where nobody is.
    let (_taken, nowhere) = nowhere();
    let switch = bound(&config(PeerId::SWITCH, &[(A, nowhere), (B, nowhere)], key(1), 1_500));
    let node = |me, other| {
        let mut told = config(me, &[(other, nowhere), (PeerId::SWITCH, address(&switch))], key(1), 1_500);
        let (socket, own) = self::nowhere();
        drop(socket);
        (told.listen, told.naming.advertise) = (own, Some(own.into()));
        bound(&told)
    };
    let (a, b) = (node(A, B), node(B, A));
    until_heard(&switch, &a, &[&b]);
    until_heard(&switch, &b, &[&a]);
    until_heard(&a, &b, &[&switch]);
    until_heard(&b, &a, &[&switch]);
    // It comes back elsewhere.
    drop(b);
    let b = node(B, A);
    until_heard(&switch, &b, &[&a]);
    until_heard(&a, &b, &[&switch]);
    until_heard(&b, &a, &[&switch]);
}

#[test]
fn a_peer_that_is_not_listed_is_answered_where_it_speaks_from_and_found_through_the_switch() {
    for key in [None, key(1)] {
        let unlisted = |me, peers: &[(PeerId, SocketAddr)], who: &[PeerId]| {
            bound(&UdpConfig { unlisted: who.to_vec(), ..config(me, peers, key.clone(), 1_500) })
        };
        let switch = unlisted(PeerId::SWITCH, &[], &[A, C]);
        let of_switch = [(PeerId::SWITCH, address(&switch))];
        let a = unlisted(A, &of_switch, &[C]);
        // Neither of the two has the other on its list.
        let c = unlisted(C, &of_switch, &[A]);
        until_heard(&c, &switch, &[&a]);
        until_heard(&switch, &c, &[&a]);
        // What the switch tells of A it has to have from somewhere.
        until_heard(&a, &switch, &[&c]);
        until_heard(&a, &c, &[&switch]);
        until_heard(&c, &a, &[&switch]);
        // It comes back elsewhere, and the other way round.
        drop(c);
        let c = unlisted(C, &of_switch, &[A]);
        until_heard(&c, &switch, &[&a]);
        until_heard(&c, &a, &[&switch]);
        drop(a);
        let a = unlisted(A, &of_switch, &[C]);
        until_heard(&a, &switch, &[&c]);
        until_heard(&c, &a, &[&switch]);
        // Who is on no list at all is not talked to.
        let b = bound(&config(B, &of_switch, key.clone(), 1_500));
        say(&b, PeerId::SWITCH, b"hello");
        std::thread::sleep(Duration::from_millis(20));
        receive(&switch, &mut Vec::new());
        assert!(!switch.is_connected(B) && switch.is_connected(C));
    }
}

#[test]
fn a_peer_cannot_be_listed_and_unlisted() {
    let twice = UdpConfig { unlisted: vec![B], ..config(A, &[(B, loopback())], None, 1_500) };
    let refused = UdpTransport::bind(&twice).expect_err("it is in both lists").to_string();
    assert!(refused.contains("more than one address"), "{refused}");
}
