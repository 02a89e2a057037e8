//! Our packets before an independent dissector: a session with every operation, a segmented READ, NAKs and
//! retransmissions is written as a capture (pcap, link type Ethernet) and read by tshark. What must hold: tshark sees
//! the opcodes, addresses, numbers and checksums that we wrote, and finds nothing malformed.
//!
//! tshark shows the ICRC and does not verify it; that it is right is shown by a frame of a real NIC
//! (`crates/wire/tests/all/roce_frames.rs`), and here by a second implementation, bit by bit.
//!
//! Skipped, with a line that says so, where tshark is not installed; `RACKMEM_TSHARK=required` makes that a failure.

use crate::pair;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nic::verbs::*;
use pair::{Faults, Pair};
use wire::roce::*;
use wire::{AllRules, Nanos};

const BASE: u64 = 0x7f00_0000_1000;

/// A session that shows everything; its frames in the order in which they were sent.
fn session() -> Vec<(Nanos, Vec<u8>)> {
    let mut pair = Pair::new(AllRules, 0, Faults::default());
    pair.record = true;
    let keys = [0, 1].map(|at: usize| pair.nodes[at].register(BASE, 1 << 16, Access::ALL));
    let link = pair.connect(Mtu::B1024, [Psn::new(0xff_fff8), Psn::new(42)], |_| {}, |_| {});
    for (offset, byte) in (0..1 << 16).zip((0..=250u8).cycle()) {
        for at in [0usize, 1] {
            let span = Span { key: keys[at], address: BASE + offset, len: 1 };
            pair.nodes[at].memory.bytes(span).unwrap()[0] = byte;
        }
    }
    // A gap, whose NAK brings the packet again; an answer that is lost, for which the time-out does.
    pair.lose =
        vec![(Opcode::WriteMiddle, 2), (Opcode::ReadResponseMiddle, 1), (Opcode::AtomicAcknowledge, 1)];
    let local = |len| Span { key: keys[0], address: BASE, len };
    let remote = |offset| Remote { key: keys[1], address: BASE + offset };
    let write = |len, immediate| Operation::Write { local: local(len), remote: remote(8), immediate };
    let send = |len, immediate| Operation::Send { local: local(len), immediate };
    let word = Some(Span { key: keys[0], address: BASE + 4096, len: 8 });
    let operations = [
        write(9, None),
        write(5000, None),
        write(6, Some(0xdead_beef)),
        write(1500, Some(0xdead_beef)),
        send(7, None),
        send(3000, None),
        send(1, Some(0xcafe)),
        send(1025, Some(0xcafe)),
        Operation::Read { local: local(0), remote: remote(0) },
        Operation::Read { local: local(333), remote: remote(3) },
        Operation::Read { local: local(4100), remote: remote(16) },
        Operation::CompareSwap { remote: remote(64), compare: 1, swap: u64::MAX, result: word },
        Operation::FetchAdd { remote: remote(72), add: 7, result: word },
    ];
    for (id, operation) in (0..).zip(operations) {
        pair.post(0, link, WorkRequest::new(WorkId(id), operation)).unwrap();
        if id == 6 {
            // The first messages meet no receive at first.
            for _ in 0..40 {
                pair.step();
            }
            for room in 0..8 {
                let local = Span { key: keys[1], address: BASE + 8192 * room, len: 8192 };
                pair.post_receive(1, link, Receive { id: WorkId(room), local }).unwrap();
            }
        }
        if id > 6 {
            pair.run();
        }
    }
    let wrong = Operation::Write { local: local(8), remote: remote(1 << 16), immediate: None };
    pair.post(0, link, WorkRequest::new(WorkId(99), wrong)).unwrap();
    pair.run();
    let statuses: Vec<_> = pair.nodes[0].completions.iter().map(|completion| completion.status).collect();
    assert_eq!(statuses[..13], [Status::Success; 13]);
    assert_eq!(statuses[13..], [Status::RemoteAccess]);
    let counters = pair.nodes[0].device.counters();
    assert!(counters.went_back > 0 && counters.timed_out > 0, "{counters:?}");
    std::mem::take(&mut pair.frames)
}

/// A session with our own operations, at both ends of which are software NICs.
fn our_session() -> Vec<(Nanos, Vec<u8>)> {
    let mut pair = Pair::new(AllRules, 0, Faults::default());
    pair.record = true;
    let keys = [0, 1].map(|at: usize| pair.nodes[at].register(BASE, 1 << 16, Access::ALL));
    pair.nodes[1].memory.objects.insert(keys[1]);
    let link = pair.connect(Mtu::B1024, [Psn::new(0xff_fff8), Psn::new(42)], |_| {}, |_| {});
    pair.lose = vec![(Opcode::SabreResponse, 2), (Opcode::RaeResponse, 1)];
    let local = |len| Span { key: keys[0], address: BASE + 4096, len };
    let remote = |offset| Remote { key: keys[1], address: BASE + offset };
    let mut writer = batch::Writer::new(1024);
    for operation in batch::Operation::ALL {
        let (address, operation) = (BASE + 512, *operation);
        let entry =
            batch::Entry { address, operation, is_wide: true, fetches: true, operand: 3, expected: 0 };
        writer.push(keys[1], &entry).expect("there is room");
    }
    let request = Span { key: keys[0], address: BASE, len: writer.bytes().len() as u32 };
    pair.nodes[0].memory.bytes(request).unwrap().copy_from_slice(writer.bytes());
    pair.nodes[1].memory.set_word(keys[1], BASE + 8192, 1);
    let operations = [
        Operation::Atomics { request, answer: local(writer.answer_bytes() as u32) },
        Operation::ReadObject { local: local(4100), remote: remote(0) },
        Operation::ReadObject { local: local(7), remote: remote(0) },
        Operation::ReadObject { local: local(4100), remote: remote(8192) },
    ];
    for (id, operation) in (0..).zip(operations) {
        pair.post(0, link, WorkRequest::new(WorkId(id), operation)).unwrap();
        pair.run();
    }
    let statuses: Vec<_> = pair.nodes[0].completions.iter().map(|completion| completion.status).collect();
    assert_eq!(statuses, [Status::Success, Status::Success, Status::Success, Status::Torn]);
    std::mem::take(&mut pair.frames)
}

/// A capture file: times in nanoseconds, Ethernet.
fn pcap(frames: &[(Nanos, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 0xffff, 1u32] {
        file.extend(word.to_le_bytes());
    }
    for (at, frame) in frames {
        let len = u32::try_from(frame.len()).expect("a frame is short");
        for word in [(at.0 / 1_000_000_000) as u32, (at.0 % 1_000_000_000) as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// The ICRC as it stands in the annex, one bit at a time.
fn icrc_bit_by_bit(frame: &[u8]) -> u32 {
    let mut covered = vec![0xff; 8];
    covered.extend(&frame[14..frame.len() - 4]);
    for masked in [8 + 1, 8 + 8, 8 + 10, 8 + 11, 8 + 26, 8 + 27, 8 + 32] {
        covered[masked] = 0xff;
    }
    let mut remainder = 0xffff_ffffu32;
    for byte in covered {
        for bit in 0..8 {
            let top = (remainder >> 31) ^ u32::from(byte >> bit & 1);
            remainder = (remainder << 1) ^ if top == 1 { 0x04c1_1db7 } else { 0 };
        }
    }
    // The first bit sent is the highest of the remainder; bytes are stored lowest bit first.
    (!remainder).reverse_bits()
}

fn tshark(file: &Path, fields: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-n", "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]);
    command.args(["-o", "ip.check_checksum:TRUE"]);
    // It guesses what a short payload might be, and finds it to be a bad one of that kind.
    command.args(["--disable-protocol", "rpcordma"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(String::from).collect()
}

const FIELDS: [&str; 20] = [
    "ip.src",
    "ip.dst",
    "udp.dstport",
    "ip.checksum.status",
    "infiniband.bth.opcode",
    "infiniband.bth.padcnt",
    "infiniband.bth.p_key",
    "infiniband.bth.destqp",
    "infiniband.bth.a",
    "infiniband.bth.psn",
    "infiniband.reth.va",
    "infiniband.reth.r_key",
    "infiniband.reth.dmalen",
    "infiniband.atomiceth.swapdt",
    "infiniband.atomiceth.cmpdt",
    "infiniband.aeth.syndrome",
    "infiniband.aeth.msn",
    "infiniband.atomicacketh.origremdt",
    "infiniband.immdt",
    "infiniband.invariant.crc",
];

/// What tshark must say of a frame.
fn expected(frame: &[u8]) -> String {
    let (Frame { route, packet }, payload) = Frame::parse(frame).expect("it is ours");
    let mut line = String::new();
    let bth = format!(
        "{}|{}|4791|1|{}|{}|{}|0x{:06x}|{}|{}|",
        route.source,
        route.destination,
        packet.opcode as u8,
        payload.len().wrapping_neg() & 3,
        packet.partition,
        packet.to.get(),
        u8::from(packet.ack_request),
        packet.psn.get(),
    );
    line.push_str(&bth);
    let place = |address: u64, key: Key| format!("0x{address:016x}|0x{:08x}", key.0);
    let reth = |reth: Reth| format!("{}|{}|||||", place(reth.address, reth.key), reth.length);
    let aeth = |aeth: Aeth| format!("|||||{}|{}", aeth.syndrome.to_wire(), aeth.messages);
    match packet.extension {
        Extension::Plain => line.push_str("||||||||"),
        Extension::Immediate(data) => write!(line, "||||||||{data:08x}").unwrap(),
        Extension::Reth(place) => write!(line, "{}|", reth(place)).unwrap(),
        Extension::RethImmediate(place, data) => write!(line, "{}|{data:08x}", reth(place)).unwrap(),
        Extension::Atomic(word) => {
            let place = place(word.address, word.key);
            write!(line, "{place}||{}|{}||||", word.swap_or_add, word.compare).unwrap();
        }
        Extension::Aeth(said) => write!(line, "{}||", aeth(said)).unwrap(),
        Extension::AethAtomic(said, original) => write!(line, "{}|{original}|", aeth(said)).unwrap(),
    }
    let icrc = frame[frame.len() - 4..].try_into().expect("four bytes");
    write!(line, "|0x{:08x}", u32::from_be_bytes(icrc)).unwrap();
    line
}

/// Versions of tshark differ in which numbers they write in base 16.
fn numbers(line: &str) -> Vec<String> {
    let number = |field: &str| match field.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map_or(field.into(), |number| number.to_string()),
        None => field.into(),
    };
    line.split('|').map(number).collect()
}

fn written(frames: &[(Nanos, Vec<u8>)], name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, pcap(frames)).expect("the capture can be written");
    file
}

#[test]
fn the_sessions_show_every_packet() {
    for (frames, ours) in [(session(), false), (our_session(), true)] {
        let opcode = |frame: &[u8]| Frame::parse(frame).expect("it is ours").0.packet.opcode;
        let mut seen: Vec<Opcode> = frames.iter().map(|(_, frame)| opcode(frame)).collect();
        seen.sort_unstable();
        seen.dedup();
        let all =
            Opcode::ALL.iter().copied().filter(|opcode| (*opcode as u8 >= Opcode::MANUFACTURER) == ours);
        assert_eq!(seen, all.collect::<Vec<_>>());
    }
}

#[test]
fn the_checksum_is_that_of_the_annex() {
    for (_, frame) in session().into_iter().chain(our_session()) {
        let sent = u32::from_le_bytes(frame[frame.len() - 4..].try_into().unwrap());
        assert_eq!(sent, icrc_bit_by_bit(&frame));
    }
}

#[test]
fn tshark_reads_what_we_wrote() {
    let version = Command::new("tshark").arg("--version").output();
    let Some(version) = version.ok().filter(|version| version.status.success()) else {
        assert!(
            std::env::var("RACKMEM_TSHARK").as_deref() != Ok("required"),
            "tshark is required, and cannot be run"
        );
        return eprintln!("skipped: tshark is not installed (apt-get install tshark)");
    };
    println!("{}", String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or_default());
    let frames = session();
    let file = written(&frames, "session.pcap");
    let read = tshark(&file, &FIELDS);
    assert_eq!(read.len(), frames.len());
    for (number, (line, (_, frame))) in read.iter().zip(&frames).enumerate() {
        assert_eq!(numbers(line), numbers(&expected(frame)), "frame {} of {}", number + 1, file.display());
    }
    let complaints = tshark(&file, &["_ws.malformed", "_ws.expert.message"]);
    for (number, complaint) in complaints.iter().enumerate() {
        assert_eq!(complaint, "|", "frame {} of {}", number + 1, file.display());
    }
    println!("{} frames: all as we wrote them, none malformed", frames.len());
}

#[test]
fn tshark_takes_our_packets_for_a_manufacturers() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return eprintln!("skipped: tshark is not installed (apt-get install tshark)");
    }
    let frames = our_session();
    let file = written(&frames, "ours.pcap");
    // Up to the sequence number; what follows it does not know, and so has nothing to say of.
    const KNOWN: usize = 10;
    let read = tshark(&file, &FIELDS[..KNOWN]);
    assert_eq!(read.len(), frames.len());
    for (number, (line, (_, frame))) in read.iter().zip(&frames).enumerate() {
        let expected = numbers(&expected(frame));
        assert_eq!(numbers(line), expected[..KNOWN], "frame {} of {}", number + 1, file.display());
    }
    let complaints = tshark(&file, &["_ws.malformed", "_ws.expert.message"]);
    assert!(complaints.iter().all(|complaint| complaint == "|"), "{complaints:?}");
}

#[test]
fn tshark_finds_fault_with_a_frame_that_is_cut() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return eprintln!("skipped: tshark is not installed (apt-get install tshark)");
    }
    // The RETH ends too early.
    let mut frames = session();
    frames.truncate(1);
    frames[0].1.truncate(14 + 20 + 8 + 12 + 9);
    let file = written(&frames, "cut.pcap");
    let complaints = tshark(&file, &["_ws.malformed", "_ws.expert.message"]);
    assert_ne!(complaints, ["|"], "a dissector that never complains would prove nothing");
}
