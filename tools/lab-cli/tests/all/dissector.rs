//! What tshark shows of a rack's datagrams is what was sent: of every kind of packet, alone in a datagram and among others.
//!
//! Skipped where tshark is not installed; `RACKMEM_TSHARK=required` makes that a failure.

use std::fs;
use std::process::{Command, Output};
use std::time::Instant;

use rackmem::transport::udp::{UdpConfig, UdpTransport};
use rackmem::transport::{Body, Contents, Outgoing, PeerId, Transport};
use wire::roce::{Extension, Layout, Opcode, Psn, QpNumber};
use wire::{
    BlockTag, Copyset, GlobalAddr, LockKind, LockPacket, Mode, NodeId, Packet, PacketKind, RequesterId, Seq,
    SlotId, Term, WaitList, roce,
};

use crate::shell::Temporary;
use crate::tapped::{A, Pair, TIMEOUT, Tap, config, key};

/// Bytes of a packet on the path: longer ones are sent in pieces.
const MTU: usize = 1_500;

/// The program for tshark, in a file. None: there is no tshark.
fn program(temporary: &Temporary) -> Option<std::path::PathBuf> {
    if Command::new("tshark").arg("--version").output().is_err() {
        assert!(std::env::var("RACKMEM_TSHARK").as_deref() != Ok("required"), "tshark cannot be run");
        eprintln!("SKIPPED: tshark is not installed");
        return None;
    }
    let program = temporary.path("rackmem.lua");
    let printed = Command::new(crate::COMMAND).arg("dissector").output().expect("the command runs");
    assert!(printed.status.success() && printed.stderr.is_empty(), "{printed:?}");
    fs::write(&program, printed.stdout).expect("a file");
    Some(program)
}

/// A capture of these datagrams.
fn capture(datagrams: &[Vec<u8>]) -> Vec<u8> {
    // Packets that begin with their IP header.
    const RAW: u32 = 101;
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 1 << 17, RAW] {
        file.extend(u32::to_le_bytes(word));
    }
    for datagram in datagrams {
        let udp = (8 + datagram.len()) as u16;
        let mut ip = [0; 28];
        (ip[0], ip[8], ip[9]) = (0x45, 64, 17);
        ip[2..4].copy_from_slice(&(20 + udp).to_be_bytes());
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        ip[20..24].copy_from_slice(&[0x1c, 0xe8, 0x1c, 0xe9]);
        ip[24..26].copy_from_slice(&udp.to_be_bytes());
        let length = (28 + datagram.len()) as u32;
        for word in [0, 0, length, length] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(ip);
        file.extend(datagram);
    }
    file
}

/// What tshark says of them.
fn tshark(temporary: &Temporary, program: &std::path::Path, datagrams: &[Vec<u8>], more: &[&str]) -> String {
    let file = temporary.path("datagrams.pcap");
    fs::write(&file, capture(datagrams)).expect("a file");
    let script = format!("lua_script:{}", program.display());
    let Output { status, stdout, stderr } = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .arg("-X")
        .arg(script)
        .args(more)
        .output()
        .expect("it runs");
    let (said, wrong) = (String::from_utf8(stdout).unwrap(), String::from_utf8_lossy(&stderr).into_owned());
    assert!(status.success() && !wrong.contains("Lua") && !said.contains("Lua Error"), "{wrong}{said}");
    assert!(!said.contains("Malformed") && !said.contains("cut short"), "{said}");
    said
}

/// All values of these fields, in the order in which they came.
fn fields<const N: usize>(
    temporary: &Temporary,
    program: &std::path::Path,
    datagrams: &[Vec<u8>],
    names: [&str; N],
) -> [Vec<u64>; N] {
    let asked = names.iter().flat_map(|name| ["-e", name]);
    let flags: Vec<&str> =
        ["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"].into_iter().chain(asked).collect();
    let said = tshark(temporary, program, datagrams, &flags);
    let mut all = names.map(|_| Vec::new());
    for line in said.lines() {
        for (all, values) in all.iter_mut().zip(line.split('\t')) {
            all.extend(values.split(',').filter(|value| !value.is_empty()).map(|value| {
                let number = value
                    .strip_prefix("0x")
                    .map_or_else(|| value.parse(), |hex| u64::from_str_radix(hex, 16));
                number.unwrap_or_else(|_| panic!("{value:?} is no number, in {line:?}"))
            }));
        }
    }
    all
}

/// One of each kind, told apart by their numbers.
fn packets() -> Vec<Packet> {
    let requester = RequesterId { node: NodeId(0), slot: SlotId(5) };
    let of = |(number, kind): (u64, PacketKind)| {
        Packet::request(kind, BlockTag::from_bits(1_u64 << 48 | number << 12), requester, Seq(number))
    };
    (1..).zip(PacketKind::ALL).map(of).collect()
}

fn locks() -> Vec<LockPacket> {
    let of = |(number, kind): (u64, LockKind)| {
        let mut queue = WaitList::EMPTY;
        for node in 0..number % 4 {
            queue.push(NodeId(node as u16), Mode::Write);
        }
        let packet = LockPacket::new(kind, GlobalAddr::new(NodeId(1), 64 * number), 8, NodeId(0));
        LockPacket { term: Term(number), nodes: Copyset::from_bits(5), queue, ..packet }
    };
    (1..).zip(LockKind::ALL).map(of).collect()
}

/// Every field that this test compares, as it was sent.
fn sent() -> [Vec<u64>; 6] {
    let (packets, locks) = (packets(), locks());
    [
        packets.iter().map(|packet| packet.kind as u64).collect(),
        packets.iter().map(|packet| packet.tag.bits()).collect(),
        packets.iter().map(|packet| packet.seq.0).collect(),
        locks.iter().map(|packet| packet.kind as u64).collect(),
        locks.iter().map(|packet| packet.lock.bits()).collect(),
        locks.iter().map(|packet| packet.queue.len() as u64).collect(),
    ]
}

const FIELDS: [&str; 6] = [
    "rackmem.packet.kind",
    "rackmem.packet.tag",
    "rackmem.packet.seq",
    "rackmem.lock.kind",
    "rackmem.lock.lock",
    "rackmem.lock.queued",
];

#[test]
fn every_packet_among_others_is_shown_as_it_was_sent() {
    let temporary = Temporary::new("dissector-data");
    let Some(program) = program(&temporary) else { return };
    let pair = Pair::connected(MTU);
    let mut out = Outgoing::new();
    let b = PeerId::node(NodeId(1));
    packets().iter().for_each(|packet| pair.a.send(b, Body::Packet(packet, Contents::None), &mut out));
    locks().iter().for_each(|packet| pair.a.send(b, Body::Lock(packet, Contents::None), &mut out));
    let plain: Vec<Opcode> = (0..=u8::MAX)
        .filter_map(Opcode::from_wire)
        .filter(|opcode| opcode.layout() == Layout::Plain)
        .collect();
    for (number, opcode) in (7..).zip(&plain) {
        let packet = roce::Packet::new(*opcode, QpNumber::new(3), Psn::new(number), Extension::Plain);
        pair.a.send(b, Body::Verbs(&packet, 0, Contents::None), &mut out);
    }
    pair.a.send(b, Body::Control(b"something"), &mut out);
    // Longer than a datagram.
    let words = vec![7; 512];
    let long = Packet { payload: 4096, ..packets()[0] };
    pair.a.send(b, Body::Packet(&long, Contents::Own(&words)), &mut out);
    pair.a.flush(&mut out);
    let datagrams = pair.tap.sent_by_a();
    assert!(datagrams.len() < packets().len(), "many travel together");
    assert_eq!(fields(&temporary, &program, &datagrams, FIELDS), sent());
    let [opcodes, numbers, pieces, totals] = fields(
        &temporary,
        &program,
        &datagrams,
        ["rackmem.verbs.opcode", "rackmem.verbs.psn", "rackmem.piece.offset", "rackmem.piece.total"],
    );
    assert_eq!(opcodes, plain.iter().map(|opcode| *opcode as u64).collect::<Vec<_>>());
    assert_eq!(numbers, (7..7 + plain.len() as u64).collect::<Vec<_>>());
    assert!(
        pieces.len() > 2 && pieces[0] == 0 && totals.iter().all(|total| *total == 64 + 4096),
        "{pieces:?}"
    );
    let said = tshark(&temporary, &program, &datagrams, &[]);
    assert!(said.contains("RACKMEM") && said.contains("node 0 > node 1: ReadMiss "), "{said}");
}

#[test]
fn every_packet_alone_in_its_datagram_and_greetings_are_shown_as_they_were_sent() {
    let temporary = Temporary::new("dissector-single");
    let Some(program) = program(&temporary) else { return };
    let tap = Tap::new();
    let bind = |me, other, address| {
        let config = UdpConfig { singles: true, ..config(me, &[(other, address)], key(1), MTU) };
        UdpTransport::bind(&config).expect("a peer")
    };
    let (node, switch) = (bind(A, PeerId::SWITCH, tap.for_a()), bind(PeerId::SWITCH, A, tap.for_b()));
    let (mut greetings, began) = (Vec::new(), Instant::now());
    while !(node.is_connected(PeerId::SWITCH) && switch.is_connected(A)) {
        for bytes in tap.sent_by_a() {
            tap.to_b(&switch, &bytes);
            greetings.push(bytes);
        }
        tap.sent_by_b().iter().for_each(|bytes| tap.to_a(&node, bytes));
        node.receive(&mut |_, _| {});
        switch.receive(&mut |_, _| {});
        assert!(began.elapsed() < TIMEOUT, "no connection");
    }
    tap.sent_by_a();
    let [kinds] = fields(&temporary, &program, &greetings, ["rackmem.kind"]);
    assert!(!kinds.is_empty() && kinds.iter().all(|kind| *kind == 2), "{kinds:?}");
    let mut out = Outgoing::new();
    packets().iter().for_each(|packet| {
        node.send(PeerId::SWITCH, Body::Packet(packet, Contents::None), &mut out);
    });
    locks().iter().for_each(|packet| node.send(PeerId::SWITCH, Body::Lock(packet, Contents::None), &mut out));
    node.flush(&mut out);
    let datagrams = tap.sent_by_a();
    assert_eq!(fields(&temporary, &program, &datagrams, FIELDS), sent());
    let [kinds, counters] = fields(&temporary, &program, &datagrams, ["rackmem.kind", "rackmem.counter"]);
    assert_eq!(kinds.len(), packets().len() + locks().len());
    assert!(kinds[..packets().len()].iter().all(|kind| *kind == 3), "{kinds:?}");
    assert!(kinds[packets().len()..].iter().all(|kind| *kind == 4), "{kinds:?}");
    assert!(counters[..packets().len()].is_sorted(), "{counters:?}");
}
