//! What a message over UDP costs on this machine: round trips between two threads that yield, and one-way bursts,
//! with and without tags. Both ends are on loopback.
//!
//!     cargo run --release -p rackmem-transport --example udp_speed [-- SECONDS]

#[cfg(target_os = "linux")]
fn main() {
    let seconds: f64 = std::env::args().nth(1).map_or(1.0, |text| text.parse().expect("seconds"));
    speed::run(std::time::Duration::from_secs_f64(seconds));
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the UDP transport needs Linux");
}

#[cfg(target_os = "linux")]
mod speed {
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    use transport::udp::{Key, Naming, UdpConfig, UdpTransport};
    use transport::{Body, Contents, Outgoing, PeerId, Terms, Transport};
    use wire::coherence::PacketKind;
    use wire::{BlockTag, NodeId, Packet, RequesterId, Seq, SlotId};

    const A: PeerId = PeerId::node(NodeId(0));
    const B: PeerId = PeerId::node(NodeId(1));

    pub(super) fn run(span: Duration) {
        println!(
            "{:>8} {:>6} {:>4}  {:>10} {:>10} {:>10}",
            "payload", "mtu", "tags", "p50", "p99", "bare p50"
        );
        for words in [0, 512] {
            for mtu in [65_535, 1_500] {
                let bytes = if words == 0 { 80 } else { 64 + words * 8 + 8 + 48 };
                let bare = bare_round_trips(bytes, span);
                for keyed in [true, false] {
                    let mut times = round_trips(words, mtu, keyed, span);
                    let mut at = |part: f64| percentile(&mut times, part);
                    let (p50, p99) = (at(0.5), at(0.99));
                    let tags = if keyed { "yes" } else { "no" };
                    println!("{:>8} {mtu:>6} {tags:>4}  {p50:>10?} {p99:>10?} {bare:>10?}", words * 8);
                }
            }
        }
        println!("\none way, bursts of 32 messages");
        println!(
            "{:>8} {:>6} {:>4}  {:>12} {:>12} {:>8}",
            "payload", "mtu", "tags", "messages/s", "datagrams/s", "lost"
        );
        for (words, mtu) in [(0, 65_535), (0, 1_500), (512, 65_535), (512, 1_500)] {
            for keyed in [true, false] {
                one_way(words, mtu, keyed, span);
            }
        }
    }

    fn bind(key: Option<&Key>, mtu: usize) -> (UdpTransport, UdpTransport) {
        let listen: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        // Both have to know the other's port: reserve one of them first.
        let reserved =
            std::net::UdpSocket::bind(listen).and_then(|socket| socket.local_addr()).expect("a port");
        let config = |me, listen, peers| UdpConfig {
            me,
            listen,
            peers,
            unlisted: Vec::new(),
            naming: Naming::default(),
            key: key.cloned(),
            mtu,
            block: 1 << 20,
            coalescing: true,
            singles: false,
            terms: Terms::default(),
        };
        let b = UdpTransport::bind(&config(B, listen, vec![(A, reserved.into())])).expect("B");
        let a = UdpTransport::bind(&config(A, reserved, vec![(B, b.address().expect("bound").into())]))
            .expect("A");
        while !(a.is_connected(B) && b.is_connected(A)) {
            a.receive(&mut |_, _| {});
            b.receive(&mut |_, _| {});
        }
        (a, b)
    }

    fn packet(words: usize) -> Packet {
        let requester = RequesterId { node: NodeId(0), slot: SlotId(0) };
        let mut packet = Packet::request(PacketKind::ReadMiss, BlockTag::from_bits(0), requester, Seq(1));
        packet.payload = words as u32 * 8;
        packet
    }

    fn percentile(times: &mut [Duration], part: f64) -> Duration {
        times.sort_unstable();
        times[((times.len() - 1) as f64 * part) as usize]
    }

    fn round_trips(words: usize, mtu: usize, keyed: bool, span: Duration) -> Vec<Duration> {
        let key = keyed.then(|| Key::generate().expect("random numbers"));
        let (a, b) = bind(key.as_ref(), mtu);
        let stop = AtomicBool::new(false);
        let mut times = Vec::new();
        let answer = |transport: &UdpTransport, to, out: &mut Outgoing| {
            let mut come = 0;
            transport.receive(&mut |_, body| {
                if let Body::Packet(packet, contents) = body {
                    come += 1;
                    transport.send(to, Body::Packet(packet, contents), out);
                }
            });
            come
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut out = Outgoing::new();
                while !stop.load(Relaxed) {
                    if answer(&b, A, &mut out) == 0 {
                        std::thread::yield_now();
                    } else {
                        b.flush(&mut out);
                    }
                }
            });
            let contents = vec![5; words];
            let mut out = Outgoing::new();
            let start = Instant::now();
            while start.elapsed() < span {
                let begin = Instant::now();
                let contents = if words == 0 { Contents::None } else { Contents::Own(&contents) };
                a.send(B, Body::Packet(&packet(words), contents), &mut out);
                a.flush(&mut out);
                while a.receive(&mut |_, _| {}) == 0 {
                    std::thread::yield_now();
                    assert!(begin.elapsed() < Duration::from_secs(5), "a message was lost on loopback");
                }
                times.push(begin.elapsed());
            }
            stop.store(true, Relaxed);
        });
        times
    }

    /// Plain sockets, the same bytes, the same waiting: the yardstick.
    fn bare_round_trips(bytes: usize, span: Duration) -> Duration {
        let socket = || {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
            socket.set_nonblocking(true).expect("non-blocking");
            socket
        };
        let (a, b) = (socket(), socket());
        let (to_a, to_b) = (a.local_addr().expect("bound"), b.local_addr().expect("bound"));
        let stop = AtomicBool::new(false);
        let mut times = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut buffer = vec![0; 65_536];
                while !stop.load(Relaxed) {
                    match b.recv_from(&mut buffer) {
                        Ok((length, _)) => drop(b.send_to(&buffer[..length], to_a)),
                        Err(_) => std::thread::yield_now(),
                    }
                }
            });
            let mut buffer = vec![0; 65_536];
            let start = Instant::now();
            while start.elapsed() < span {
                let begin = Instant::now();
                a.send_to(&vec![0; bytes], to_b).expect("sent");
                while a.recv_from(&mut buffer).is_err() {
                    std::thread::yield_now();
                }
                times.push(begin.elapsed());
            }
            stop.store(true, Relaxed);
        });
        percentile(&mut times, 0.5)
    }

    fn one_way(words: usize, mtu: usize, keyed: bool, span: Duration) {
        let key = keyed.then(|| Key::generate().expect("random numbers"));
        let (a, b) = bind(key.as_ref(), mtu);
        let stop = AtomicBool::new(false);
        let contents = vec![5; words];
        let (mut sent, mut bursts) = (0_u64, 0_u64);
        let start = Instant::now();
        let received = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let mut received = 0;
                while !stop.load(Relaxed) {
                    match b.receive(&mut |_, _| {}) {
                        0 => std::thread::yield_now(),
                        come => received += come as u64,
                    }
                }
                received
            });
            let mut out = Outgoing::new();
            while start.elapsed() < span {
                for _ in 0..32 {
                    let contents = if words == 0 { Contents::None } else { Contents::Own(&contents) };
                    a.send(B, Body::Packet(&packet(words), contents), &mut out);
                }
                a.flush(&mut out);
                (sent, bursts) = (sent + 32, bursts + 1);
            }
            stop.store(true, Relaxed);
            receiver.join().expect("the receiver")
        });
        let record = 8 + 64 + words as u64 * 8;
        let room = (mtu as u64 - 28) / 8 * 8 - 48;
        // Whole messages to a datagram, or datagrams to a message.
        let datagrams = if record <= room {
            bursts * 32_u64.div_ceil(room / record)
        } else {
            sent * (record - 8).div_ceil(room - 24)
        };
        let seconds = start.elapsed().as_secs_f64();
        let (tags, lost) = (if keyed { "yes" } else { "no" }, 100.0 * (sent - received) as f64 / sent as f64);
        let (messages, datagrams) = (received as f64 / seconds, datagrams as f64 / seconds);
        println!("{:>8} {mtu:>6} {tags:>4}  {messages:>12.0} {datagrams:>12.0} {lost:>7.1}%", words * 8);
    }
}
