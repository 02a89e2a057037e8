//! How fast the shared-memory transport is: messages one way, and round trips, between two processes.
//!
//! `cargo run --release -p rackmem-transport --example shm_speed`. It starts itself again as the other process. Both
//! sides do what a peer does: receive while they attend, yield for 50 us, then sleep.

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("shared memory between processes is for Linux");
}

#[cfg(target_os = "linux")]
fn main() {
    speed::main();
}

#[cfg(target_os = "linux")]
mod speed {
    use std::path::Path;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use transport::shm::{ShmConfig, ShmTransport};
    use transport::{Body, Contents, Outgoing, PeerId, Terms, Transport};
    use wire::{BlockTag, Nanos, NodeId, Packet, PacketKind, RequesterId, Seq, SlotId};

    const US: PeerId = PeerId::node(NodeId(0));
    const THEM: PeerId = PeerId::node(NodeId(1));
    /// How long a peer yields before it sleeps.
    const YIELDING: Duration = Duration::from_micros(50);
    const LONG: Nanos = Nanos::from_millis(1000);
    /// The numbers of the last packet of a stream, and of a round trip.
    const LAST: u64 = u64::MAX;
    const ECHO: u64 = u64::MAX - 1;

    pub(super) fn main() {
        let arguments: Vec<_> = std::env::args().collect();
        if let [_, role, dir] = &arguments[..]
            && role == "echo"
        {
            return echo(&open(Path::new(dir), THEM));
        }
        let dir = std::env::temp_dir().join(format!("rackmem-shm-speed-{}", std::process::id()));
        let us = open(&dir, US);
        let this = std::env::current_exe().expect("this program");
        let mut them = Other(Command::new(this).arg("echo").arg(&dir).spawn().expect("the other process"));
        while round_trip(&us, 0, Duration::from_millis(10), YIELDING).is_none() {}

        for (name, payload) in [("64 B (header alone)", 0), ("64 B + 4 KiB", 4096)] {
            let (rate, refused) = one_way(&us, payload);
            println!(
                "one way, {name}: {:.2} M messages/s, {refused} refused by a full ring and sent again",
                rate / 1e6
            );
        }
        for (name, yielding) in [("yield for 50 us, then sleep", YIELDING), ("sleep at once", Duration::ZERO)]
        {
            for payload in [0, 4096] {
                let mut times: Vec<_> = (0..20_000)
                    .map(|_| round_trip(&us, payload, Duration::from_secs(5), yielding).expect("an answer"))
                    .collect();
                times.sort_unstable();
                let at = |part: f64| times[(times.len() as f64 * part) as usize].as_secs_f64() * 1e6;
                println!(
                    "round trip of 64 B + {payload} B, {name}: p50 {:.2} us, p90 {:.2} us, p99 {:.2} us",
                    at(0.5),
                    at(0.9),
                    at(0.99)
                );
            }
        }
        for payload in [0, 4096] {
            let (sending, receiving) = alone(&us, &dir, payload);
            println!(
                "64 B + {payload} B on one thread: {sending:.0} ns to send, {receiving:.0} ns to receive"
            );
        }
        idle(&us, &mut them.0);
        drop(them);
        // The other process was killed: its files are still there.
        drop(open(&dir, THEM));
        drop(us);
        std::fs::remove_dir(&dir).expect("an empty directory");
    }

    /// The other process, which ends with this one.
    struct Other(Child);

    impl Drop for Other {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn open(dir: &Path, me: PeerId) -> ShmTransport {
        let config =
            ShmConfig { dir: dir.to_path_buf(), me, block: 4096, ring_bytes: None, terms: Terms::default() };
        ShmTransport::open(&config).unwrap_or_else(|error| panic!("{error}"))
    }

    fn packet(number: u64, payload: usize) -> Packet {
        let requester = RequesterId { node: NodeId(0), slot: SlotId(0) };
        let mut packet =
            Packet::request(PacketKind::ReadMiss, BlockTag::from_bits(0), requester, Seq(number));
        packet.payload = payload as u32;
        packet
    }

    /// Sends and says whether it was taken.
    fn send(from: &ShmTransport, to: PeerId, number: u64, payload: &[u64], out: &mut Outgoing) -> bool {
        let before = from.counters().counts().sent;
        let contents = if payload.is_empty() { Contents::None } else { Contents::Own(payload) };
        from.send(to, Body::Packet(&packet(number, payload.len() * 8), contents), out);
        from.counters().counts().sent > before
    }

    /// Answers the last packet of a stream, and those that want an answer.
    fn echo(them: &ShmTransport) {
        let mut out = Outgoing::new();
        loop {
            let mut busy = Instant::now();
            them.attend();
            while busy.elapsed() < YIELDING {
                let came = them.receive(&mut |from, body| {
                    let Body::Packet(packet, contents) = body else { return };
                    if packet.seq.0 >= ECHO {
                        them.send(from, Body::Packet(packet, contents), &mut out);
                    }
                });
                them.flush(&mut out);
                if came > 0 {
                    busy = Instant::now();
                } else {
                    std::thread::yield_now();
                }
            }
            if !them.leave() {
                them.wait(LONG);
            }
        }
    }

    /// Waits for one packet with this number.
    fn hear(us: &ShmTransport, number: u64, most: Duration, yielding: Duration) -> bool {
        let begun = Instant::now();
        let mut heard = false;
        while !heard && begun.elapsed() < most {
            let busy = Instant::now();
            us.attend();
            loop {
                us.receive(&mut |_, body| {
                    heard |= matches!(body, Body::Packet(packet, _) if packet.seq.0 == number)
                });
                if heard || busy.elapsed() >= yielding {
                    break;
                }
                std::thread::yield_now();
            }
            if !us.leave() && !heard {
                us.wait(Nanos(most.as_nanos() as u64));
            }
        }
        heard
    }

    fn round_trip(us: &ShmTransport, payload: usize, most: Duration, yielding: Duration) -> Option<Duration> {
        let contents = vec![7; payload / 8];
        let mut out = Outgoing::new();
        let begun = Instant::now();
        send(us, THEM, ECHO, &contents, &mut out);
        us.flush(&mut out);
        hear(us, ECHO, most, yielding).then(|| begun.elapsed())
    }

    /// Messages a second, and how often the ring was full.
    fn one_way(us: &ShmTransport, payload: usize) -> (f64, u64) {
        const MESSAGES: u64 = 2_000_000;
        let contents = vec![7; payload / 8];
        let mut out = Outgoing::new();
        let mut refused = 0;
        let begun = Instant::now();
        for number in 0..MESSAGES {
            let number = if number == MESSAGES - 1 { LAST } else { number };
            while !send(us, THEM, number, &contents, &mut out) {
                refused += 1;
                us.flush(&mut out);
                std::thread::yield_now();
            }
            if number % 32 == 31 {
                us.flush(&mut out);
            }
        }
        us.flush(&mut out);
        assert!(hear(us, LAST, Duration::from_secs(60), YIELDING), "the end of the stream");
        (MESSAGES as f64 / begun.elapsed().as_secs_f64(), refused)
    }

    /// What a message costs the processor, without anybody to wait for: both ends on one thread, in bursts of 32.
    fn alone(us: &ShmTransport, dir: &Path, payload: usize) -> (f64, f64) {
        const BURSTS: usize = 20_000;
        let other = open(dir, PeerId::SWITCH);
        let contents = vec![7; payload / 8];
        let body = packet(1, payload);
        let contents = if payload == 0 { Contents::None } else { Contents::Own(&contents) };
        let mut out = Outgoing::new();
        let begun = Instant::now();
        while other.receive(&mut |_, _| {}) == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "no connection");
            us.send(PeerId::SWITCH, Body::Packet(&body, contents), &mut out);
        }
        while other.receive(&mut |_, _| {}) > 0 {}
        other.attend();
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        let mut messages = 0;
        for _ in 0..BURSTS {
            let begun = Instant::now();
            for _ in 0..32 {
                us.send(PeerId::SWITCH, Body::Packet(&body, contents), &mut out);
            }
            us.flush(&mut out);
            let sent = Instant::now();
            // A visit may leave something for the next.
            loop {
                let came = other.receive(&mut |_, body| {
                    std::hint::black_box(body);
                });
                messages += came;
                if came == 0 {
                    break;
                }
            }
            sending.push(sent - begun);
            receiving.push(sent.elapsed());
        }
        other.leave();
        assert_eq!(messages, 32 * BURSTS, "every message came");
        // The median burst: others may have had the processor during some.
        let each = |mut bursts: Vec<Duration>| {
            bursts.sort_unstable();
            bursts[bursts.len() / 2].as_secs_f64() * 1e9 / 32.0
        };
        (each(sending), each(receiving))
    }

    /// What both processes use while nothing happens.
    fn idle(us: &ShmTransport, them: &mut Child) {
        let ticks = |id: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("a process");
            let fields: Vec<_> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
            fields[11].parse::<u64>().expect("ticks") + fields[12].parse::<u64>().expect("ticks")
        };
        let before = (ticks(std::process::id()), ticks(them.id()));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            us.wait(LONG);
        }
        let after = (ticks(std::process::id()), ticks(them.id()));
        println!(
            "idle for 3 s: {} and {} ticks of 10 ms of processor time",
            after.0 - before.0,
            after.1 - before.1
        );
    }
}
