//! Two peers with UDP transports, and a wire between them that the test holds in its hands: nothing passes unless
//! the test passes it on. Runs in tests.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use transport::udp::{Key, Naming, UdpConfig, UdpTransport};
use transport::{Body, Cause, Contents, Outgoing, PeerId, Terms, Transport};
use wire::coherence::PacketKind;
use wire::{BlockTag, NodeId, Packet, RequesterId, Seq, SlotId};

/// Bytes of a block in these tests.
pub(crate) const BLOCK: u64 = 1 << 20;
/// Node 0.
pub(crate) const A: PeerId = PeerId::node(NodeId(0));
/// Node 1.
pub(crate) const B: PeerId = PeerId::node(NodeId(1));
/// The longest that anything may take before a test gives up.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// A message that has been received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// A packet and its payload.
    Packet(Packet, Vec<u64>),
    /// A packet and the length of its zeroes.
    Zeroes(Packet, usize),
    /// A control message.
    Control(Vec<u8>),
}

/// A packet that says which one it is, for so many words of payload.
pub(crate) fn packet(number: u64, words: usize) -> Packet {
    let requester = RequesterId { node: NodeId(0), slot: SlotId(0) };
    let mut packet = Packet::request(PacketKind::ReadMiss, BlockTag::from_bits(0), requester, Seq(number));
    packet.payload = words as u32 * 8;
    packet
}

/// A payload that is unlike that of other numbers.
pub(crate) fn payload(number: u64, words: usize) -> Vec<u64> {
    (0..words as u64).map(|at| (number << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

/// The key of a rack.
pub(crate) fn key(number: u8) -> Option<Key> {
    Some(Key::from_bytes([number; 32]))
}

/// The configuration of a peer on loopback.
pub(crate) fn config(me: PeerId, peers: &[(PeerId, SocketAddr)], key: Option<Key>, mtu: usize) -> UdpConfig {
    UdpConfig {
        me,
        listen: loopback(),
        peers: peers.iter().map(|&(peer, address)| (peer, address.into())).collect(),
        unlisted: Vec::new(),
        naming: Naming::default(),
        key,
        mtu,
        block: BLOCK,
        coalescing: true,
        singles: false,
        terms: Terms::default(),
    }
}

/// Any port of this machine.
pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

/// Receives once, and adds what came.
pub(crate) fn receive(transport: &UdpTransport, got: &mut Vec<(PeerId, Message)>) -> usize {
    transport.receive(&mut |from, body| {
        let message = match body {
            Body::Packet(packet, Contents::None) => Message::Packet(*packet, Vec::new()),
            Body::Packet(packet, Contents::Own(words)) => Message::Packet(*packet, words.to_vec()),
            Body::Packet(packet, Contents::Zeroes(bytes)) => Message::Zeroes(*packet, bytes),
            Body::Packet(_, Contents::Shared(_)) => panic!("received contents are nobody else's"),
            Body::Lock(..) | Body::Verbs(..) => panic!("nobody sends that here"),
            Body::Control(bytes) => Message::Control(bytes.to_vec()),
        };
        got.push((from, message));
    })
}

/// How many messages this peer has dropped for this cause.
pub(crate) fn dropped(transport: &UdpTransport, cause: Cause) -> u64 {
    transport.counters().counts().dropped_for(cause)
}

/// How many it has dropped at all, coming in.
pub(crate) fn refused(transport: &UdpTransport) -> u64 {
    let counts = transport.counters().counts();
    Cause::ALL
        .into_iter()
        .filter(|&cause| cause != Cause::Unreachable)
        .map(|cause| counts.dropped_for(cause))
        .sum()
}

/// The wire between two peers.
pub(crate) struct Tap {
    /// Where A sends to.
    a_side: UdpSocket,
    /// Where B sends to.
    b_side: UdpSocket,
}

impl Tap {
    /// With nothing at its ends.
    pub(crate) fn new() -> Self {
        let side = || {
            let socket = UdpSocket::bind(loopback()).expect("loopback");
            // Capacity for a mebibyte in small datagrams, if the system allows it.
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4 << 20).ok();
            socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
            socket
        };
        Self { a_side: side(), b_side: side() }
    }

    /// What A takes for B's address.
    pub(crate) fn for_a(&self) -> SocketAddr {
        self.a_side.local_addr().expect("bound")
    }

    /// What B takes for A's address.
    pub(crate) fn for_b(&self) -> SocketAddr {
        self.b_side.local_addr().expect("bound")
    }

    /// Takes what A has sent off the wire.
    pub(crate) fn sent_by_a(&self) -> Vec<Vec<u8>> {
        take(&self.a_side)
    }

    /// Takes what B has sent off the wire.
    pub(crate) fn sent_by_b(&self) -> Vec<Vec<u8>> {
        take(&self.b_side)
    }

    /// Puts bytes on the wire to A.
    pub(crate) fn to_a(&self, a: &UdpTransport, bytes: &[u8]) {
        self.a_side.send_to(bytes, a.address().expect("bound")).expect("sent");
    }

    /// Puts bytes on the wire to B.
    pub(crate) fn to_b(&self, b: &UdpTransport, bytes: &[u8]) {
        self.b_side.send_to(bytes, b.address().expect("bound")).expect("sent");
    }
}

fn take_one(socket: &UdpSocket) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 1 << 16];
    socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let length = socket.recv(&mut buffer).ok();
    socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
    buffer.truncate(length?);
    Some(buffer)
}

fn take(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length) = socket.recv(&mut buffer) {
        all.push(buffer[..length].to_vec());
    }
    all
}

/// Two peers and the wire.
pub(crate) struct Pair {
    /// Node 0.
    pub(crate) a: UdpTransport,
    /// Node 1.
    pub(crate) b: UdpTransport,
    /// Between them.
    pub(crate) tap: Tap,
    /// What A has received.
    pub(crate) got_a: Vec<(PeerId, Message)>,
    /// What B has received.
    pub(crate) got_b: Vec<(PeerId, Message)>,
}

impl Pair {
    /// With these keys, not connected yet.
    pub(crate) fn unknown_peers(key_a: Option<Key>, key_b: Option<Key>, mtu: usize) -> Self {
        Self::of((key_a, Terms::default()), (key_b, Terms::default()), mtu)
    }

    /// With these keys and settings, not connected yet.
    pub(crate) fn of(a: (Option<Key>, Terms), b: (Option<Key>, Terms), mtu: usize) -> Self {
        let tap = Tap::new();
        let peer_id = |me, peer, address, (key, terms)| {
            UdpTransport::bind(&UdpConfig { terms, ..config(me, &[(peer, address)], key, mtu) })
                .expect("a peer_id")
        };
        let (a, b) = (peer_id(A, B, tap.for_a(), a), peer_id(B, A, tap.for_b(), b));
        Self { a, b, tap, got_a: Vec::new(), got_b: Vec::new() }
    }

    /// Connected, under one key.
    pub(crate) fn connected(mtu: usize) -> Self {
        let mut pair = Self::unknown_peers(key(1), key(1), mtu);
        pair.connect();
        pair
    }

    /// Passes on what there is, until both know each other and the wire is silent.
    pub(crate) fn connect(&mut self) {
        let start = Instant::now();
        while self.pass_all() || !(self.a.is_connected(B) && self.b.is_connected(A)) {
            assert!(start.elapsed() < TIMEOUT, "no connection");
        }
        self.got_a.clear();
        self.got_b.clear();
    }

    /// Passes on what there is until it is so. Returns what A has sent, in order.
    pub(crate) fn record_until(&mut self, is_so: impl Fn(&Self) -> bool) -> Vec<Vec<u8>> {
        let (mut recorded, start) = (Vec::new(), Instant::now());
        while !is_so(self) {
            let sent = self.tap.sent_by_a();
            self.deliver(&sent);
            recorded.extend(sent);
            for bytes in self.tap.sent_by_b() {
                self.tap.to_a(&self.a, &bytes);
            }
            self.receive();
            assert!(start.elapsed() < TIMEOUT, "it does not come about");
        }
        recorded
    }

    /// Passes on everything that is on the wire, and lets both receive. False: there was nothing.
    pub(crate) fn pass_all(&mut self) -> bool {
        let (from_a, from_b) = (self.tap.sent_by_a(), self.tap.sent_by_b());
        for bytes in &from_a {
            self.tap.to_b(&self.b, bytes);
        }
        for bytes in &from_b {
            self.tap.to_a(&self.a, bytes);
        }
        self.receive();
        !from_a.is_empty() || !from_b.is_empty()
    }

    /// Lets both receive what has been put on the wire for them.
    pub(crate) fn receive(&mut self) {
        // Loopback delivers before the sender's call returns, or soon after.
        for _ in 0..3 {
            while receive(&self.a, &mut self.got_a) > 0 {}
            while receive(&self.b, &mut self.got_b) > 0 {}
            std::thread::yield_now();
        }
    }

    /// Sends packets from A and takes the datagrams off the wire.
    pub(crate) fn sealed(&self, numbers: impl IntoIterator<Item = u64>, words: usize) -> Vec<Vec<u8>> {
        let mut out = Outgoing::new();
        for number in numbers {
            let contents = payload(number, words);
            self.a.send(B, Body::Packet(&packet(number, words), Contents::Own(&contents)), &mut out);
        }
        self.a.flush(&mut out);
        self.tap.sent_by_a()
    }

    /// The same for one datagram, without waiting for more of them.
    pub(crate) fn sealed_now(&self, numbers: impl IntoIterator<Item = u64>, words: usize) -> Vec<Vec<u8>> {
        let mut out = Outgoing::new();
        for number in numbers {
            let contents = payload(number, words);
            self.a.send(B, Body::Packet(&packet(number, words), Contents::Own(&contents)), &mut out);
        }
        self.a.flush(&mut out);
        take_one(&self.tap.a_side).into_iter().collect()
    }

    /// Puts datagrams on the wire to B, one after the other, and lets it receive each.
    pub(crate) fn deliver(&mut self, datagrams: &[Vec<u8>]) {
        for bytes in datagrams {
            let before = self.seen_by_b();
            self.tap.to_b(&self.b, bytes);
            let start = Instant::now();
            while self.seen_by_b() == before {
                receive(&self.b, &mut self.got_b);
                assert!(start.elapsed() < TIMEOUT, "a datagram is neither taken nor counted");
            }
        }
    }

    /// The numbers of the packets that B has received, in order; their contents are checked.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let number = |(from, message): &(PeerId, Message)| match message {
            Message::Packet(got, words) => {
                assert_eq!(*from, A);
                assert_eq!(*got, packet(got.seq.0, words.len()));
                assert_eq!(*words, payload(got.seq.0, words.len()));
                got.seq.0
            }
            other => panic!("{other:?}"),
        };
        self.got_b.iter().map(number).collect()
    }

    /// Changes with each datagram that B has taken off the wire.
    fn seen_by_b(&self) -> (u64, u64) {
        let counts = self.b.counters().counts();
        (counts.received_bytes, counts.dropped.iter().sum())
    }
}
