//! A rewritten append before an independent dissector: the compare-and-swap in front of the switch and behind it, and its acknowledgement,
//! as frames in a capture that tshark reads. docs/chains.md shows it as a table, which is made and compared here.
//!
//! Skipped, with a line that says so, where tshark is not installed; `RACKMEM_TSHARK=required` makes that a failure.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use wire::AllRules;
use wire::chains::Reply;
use wire::roce::frame::MOST_OVERHEAD;
use wire::roce::{Extension, Frame, Packet, Route};

use crate::chains::rig::{Entry, Rig, answer_packet, client_end, head, swap_packet, write_packet};
use crate::chains::scenarios::X;

const KEY: u64 = 7;

/// Client 2 takes X for the tail, which is the entry of unit 2 by now, in the sixth use of its slot: the packets of its append, each
/// before the switch and behind it.
fn packets() -> [(Packet, Packet); 3] {
    let (a, b) = (Entry(2, 5), Entry(3, 1));
    let mut rig = Rig::new(AllRules, 3, 5);
    rig.switch.admit(KEY);
    rig.words.insert(X.0, wire::chains::Word::tail(X.version()));
    rig.write(1, a, KEY);
    rig.swap(1, X, a);
    let psn = rig.number(2);
    let write = write_packet(2, psn, b);
    let mut written = write;
    _ = rig.switch.on_packet(rig.now, crate::chains::rig::MEMORY, &mut written, &head(b, KEY));
    rig.words.insert(b.0, wire::chains::Word::tail(b.version()));
    let psn = rig.number(2);
    let swap = swap_packet(2, psn, X, b);
    let steered = rig.pass_to_memory(2, psn, X, b);
    let original = rig.execute(2, &steered);
    let answer = answer_packet(2, psn, original);
    let mut told = answer;
    _ = rig.switch.on_packet(rig.now, client_end(2).node, &mut told, &[]);
    assert!(matches!(told.extension, Extension::AethAtomic(_, word)
        if Reply::from_bits(word) == Reply::Steered(a.at(), a.version())));
    [(write, written), (swap, steered), (answer, told)]
}

/// A packet as a frame.
fn frame(packet: Packet) -> Vec<u8> {
    let (client, memory) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 100));
    let mut route = Route::new(client, memory, 0xc066);
    (route.source_mac, route.destination_mac) = ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 100]);
    let is_write = packet.opcode == wire::roce::Opcode::WriteOnly;
    let payload = if is_write { head(Entry(3, 1), KEY) } else { Vec::new() };
    let frame = Frame { route: if packet.opcode.is_response() { route.reversed() } else { route }, packet };
    let mut bytes = vec![0; payload.len() + MOST_OVERHEAD];
    let len = frame.encode(&payload, &mut bytes);
    bytes.truncate(len);
    bytes
}

fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 0xffff, 1u32] {
        file.extend(word.to_le_bytes());
    }
    for (at, frame) in (0..).zip(frames) {
        let len = u32::try_from(frame.len()).expect("a frame is short");
        for word in [0, at * 1_000, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// What a field of a frame is, by tshark's name of it.
fn field(name: &str, frame: &[u8]) -> u64 {
    let (Frame { packet, .. }, _) = Frame::parse(frame).expect("the ICRC is right");
    match (name, packet.extension) {
        ("infiniband.bth.opcode", _) => packet.opcode as u64,
        ("infiniband.bth.destqp", _) => u64::from(packet.to.get()),
        ("infiniband.bth.psn", _) => u64::from(packet.psn.get()),
        ("infiniband.atomiceth.va", Extension::Atomic(word)) => word.address,
        ("infiniband.atomiceth.r_key", Extension::Atomic(word)) => u64::from(word.key.0),
        ("infiniband.atomiceth.swapdt", Extension::Atomic(word)) => word.swap_or_add,
        ("infiniband.atomiceth.cmpdt", Extension::Atomic(word)) => word.compare,
        ("infiniband.aeth.syndrome", Extension::AethAtomic(aeth, _)) => u64::from(aeth.syndrome.to_wire()),
        ("infiniband.atomicacketh.origremdt", Extension::AethAtomic(_, word)) => word,
        ("infiniband.invariant.crc", _) => {
            u64::from(u32::from_be_bytes(*frame.last_chunk().expect("it has an ICRC")))
        }
        _ => panic!("{name} is not in {packet:?}"),
    }
}

/// The fields that are shown, with the digits that they are written with.
const REQUEST: [(&str, usize); 7] = [
    ("infiniband.bth.opcode", 2),
    ("infiniband.bth.destqp", 6),
    ("infiniband.bth.psn", 6),
    ("infiniband.atomiceth.va", 16),
    ("infiniband.atomiceth.swapdt", 16),
    ("infiniband.atomiceth.cmpdt", 16),
    ("infiniband.invariant.crc", 8),
];
const ANSWER: [(&str, usize); 6] = [
    ("infiniband.bth.opcode", 2),
    ("infiniband.bth.destqp", 6),
    ("infiniband.bth.psn", 6),
    ("infiniband.aeth.syndrome", 2),
    ("infiniband.atomicacketh.origremdt", 16),
    ("infiniband.invariant.crc", 8),
];

fn rows(fields: &[(&str, usize)], before: &[u8], after: &[u8]) -> String {
    let mut rows = String::new();
    for (name, digits) in fields {
        let [before, after] = [before, after].map(|frame| field(name, frame));
        let changed = if before == after { "" } else { "**" };
        let name = name.strip_prefix("infiniband.").unwrap();
        let row =
            format!("| `{name}` | {before:#0w$x} | {changed}{after:#0w$x}{changed} |\n", w = digits + 2);
        rows.push_str(&row);
    }
    rows
}

fn frames() -> Vec<Vec<u8>> {
    packets().into_iter().flat_map(|(before, after)| [frame(before), frame(after)]).collect()
}

#[test]
fn the_document_shows_the_packets_field_by_field() {
    let frames = frames();
    assert_eq!(frames[0], frames[1], "a WRITE leaves as it came");
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/chains.md");
    let document = std::fs::read_to_string(document).expect("the document is there");
    for rows in [rows(&REQUEST, &frames[2], &frames[3]), rows(&ANSWER, &frames[4], &frames[5])] {
        assert!(document.contains(&rows), "docs/chains.md has no such rows:\n{rows}");
    }
}

fn tshark(file: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-n", "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]);
    command.args(["--disable-protocol", "rpcordma"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.split('|').map(String::from).collect()).collect()
}

fn number(text: &str) -> u64 {
    let read = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    read.unwrap_or_else(|_| panic!("{text} is no number"))
}

fn written(frames: &[Vec<u8>]) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("steered.pcap");
    std::fs::write(&file, pcap(frames)).expect("the capture can be written");
    file
}

#[test]
fn tshark_reads_the_rewritten_packets_as_the_document_shows_them() {
    if !Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success()) {
        assert!(std::env::var("RACKMEM_TSHARK").as_deref() != Ok("required"), "tshark cannot be run");
        return eprintln!("skipped: tshark is not installed (apt-get install tshark)");
    }
    let frames = frames();
    let file = written(&frames);
    for (fields, at) in [(&REQUEST[..], 2), (&ANSWER[..], 4)] {
        // Of an AtomicETH and of a RETH, tshark calls the address by one name.
        let names = fields.iter().map(|(name, _)| name.replace("atomiceth.va", "reth.va"));
        let names: Vec<String> = names.collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let read = tshark(&file, &names);
        assert_eq!(read.len(), frames.len());
        for at in [at, at + 1] {
            for ((name, _), text) in fields.iter().zip(&read[at]) {
                assert_eq!(number(text), field(name, &frames[at]), "{name} of frame {}", at + 1);
            }
        }
    }
    for complaint in tshark(&file, &["_ws.malformed", "_ws.expert.message"]) {
        assert_eq!(complaint, ["", ""], "{}", file.display());
    }
}
