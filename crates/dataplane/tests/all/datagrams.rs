//! Datagrams at a port, right and wrong: what is taken, what is dropped, and what goes on to the process.

use std::collections::BTreeSet;
use std::hash::Hasher as _;
use std::net::{Ipv4Addr, SocketAddrV4};

use dataplane::Loaded;
use random::Dice;
use siphasher::sip128::{Hasher128 as _, SipHasher24};
use switch::coherence::{Switch, SwitchConfig};
use switch::ebpf::memory::session;
use switch::ebpf::{DatagramTerms, Datagrams, Frames, Hook, KernelProgram, Output, datagram, verdict};
use transport::udp::NodeSession;
use wire::packet::HEADER_BYTES;
use wire::{BlockTag, Endpoint, NodeId, Packet, PacketKind, RequesterId, Seq, SlotId, SwitchEpoch};

use crate::against_the_model::{loaded, seed};

const TERMS: DatagramTerms = DatagramTerms { magic: *b"RU", version: 7, kind: 3, switch: 64 };
const HERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 7400);
const EPOCH: u32 = 3;
/// Bytes before a datagram: Ethernet, IP, UDP.
const AROUND: usize = 42;
const HEAD: usize = 32;

/// For three nodes.
fn program(hook: Hook, output: Output, copies: bool) -> KernelProgram {
    let usual = SwitchConfig::for_nodes(3);
    let config = SwitchConfig { entries: 7, epoch: SwitchEpoch(EPOCH), peeks: true, copies, ..usual };
    let switch = Switch::new(&config).expect("it fits");
    switch.for_kernel(Frames::Datagrams(TERMS, hook, output)).expect("its jumps are short enough")
}

/// The program, its state, and what the nodes know.
struct Port {
    program: KernelProgram,
    loaded: Loaded,
    state: Vec<u8>,
}

fn session_of(node: u16, life: u64) -> NodeSession {
    let key =
        |direction: u8| std::array::from_fn(|byte| direction ^ (node as u8) << 4 ^ life as u8 ^ byte as u8);
    NodeSession {
        node: NodeId(node),
        address: SocketAddrV4::new(Ipv4Addr::new(10, 77, node as u8 + 1, 2), 7400).into(),
        theirs: 0x1000 + life,
        mine: 0x2000,
        key_in: key(0x11),
        key_out: key(0x77),
    }
}

impl Port {
    fn new() -> Option<Self> {
        Self::of(Hook::TrafficControl, false)
    }

    fn of(hook: Hook, copies: bool) -> Option<Self> {
        let program = program(hook, Output::Log, copies);
        let mut loaded = loaded(&program)?;
        loaded.is_at(HERE);
        loaded.set_epoch(EPOCH);
        loaded.clear(0);
        // Node 2 has no port.
        for node in 0..2 {
            loaded.begin_life(node, &session_of(node as u16, 0));
            let mut template = [0; session::TEMPLATE_BYTES];
            template[48..].copy_from_slice(&TERMS.first_word(node as u8));
            loaded.place(node, 5 + node as u32, &template);
            loaded.switch_life(node);
        }
        Some(Self { program, loaded, state: Vec::new() })
    }

    /// Runs the program on a frame: its verdict, and the datagrams that went out.
    fn run(&mut self, frame: &[u8]) -> (u32, Vec<Vec<u8>>) {
        self.loaded.forget_log();
        let run = self.loaded.test_run(frame, 1).expect("the kernel runs it");
        self.loaded.state(&mut self.state);
        let layout = &self.program.layout;
        let sent = layout.logged(&self.state, datagram::datagram_bytes(HEADER_BYTES));
        (run.verdict, sent.map(<[u8]>::to_vec).collect())
    }

    fn counted(&self, what: Datagrams) -> u64 {
        self.program.layout.datagrams(&self.state, what)
    }
}

fn tag(key: &[u8; 16], bytes: &[u8]) -> [u8; 16] {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(bytes);
    hasher.finish128().as_bytes()
}

/// A request of node 0 for a block whose home is node 1: the switch, which has no entry, sends it there.
fn request(home: u64) -> Packet {
    let requester = RequesterId { node: NodeId(0), slot: SlotId(0) };
    let tag = BlockTag::from_bits(home << 48 | 0x1000);
    Packet { epoch: SwitchEpoch(EPOCH), ..Packet::request(PacketKind::ReadMiss, tag, requester, Seq(4)) }
}

fn frame_of(packet: &Packet, from: &NodeSession, counter: u64) -> Vec<u8> {
    let length = (20 + 8 + datagram::datagram_bytes(HEADER_BYTES)) as u16;
    let mut frame = vec![0; AROUND];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    frame[23] = 17;
    frame[30..34].copy_from_slice(&HERE.ip().octets());
    frame[36..38].copy_from_slice(&HERE.port().to_be_bytes());
    frame[38..40].copy_from_slice(&(length - 20).to_be_bytes());
    let mut head = vec![b'R', b'U', 7, 3, from.node.0 as u8, 64, 1, 0];
    for word in [counter, from.theirs, from.mine] {
        head.extend(word.to_le_bytes());
    }
    let mut header = [0; HEADER_BYTES];
    packet.encode(&mut header);
    head.extend(header);
    let tag = tag(&from.key_in, &head);
    head.extend(tag);
    frame.extend(head);
    frame
}

#[test]
fn a_datagram_is_taken_and_answered_with_others_that_their_receivers_verify() {
    [Hook::TrafficControl, Hook::Driver].into_iter().for_each(is_taken_and_answered);
}

fn is_taken_and_answered(hook: Hook) {
    let Some(mut port) = Port::of(hook, false) else { return };
    let (from, to) = (session_of(0, 0), session_of(1, 0));
    for counter in 1..=3 {
        let (verdict, sent) = port.run(&frame_of(&request(1), &from, counter));
        assert_eq!((verdict, sent.len()), (verdict::taken(hook), 1));
        let (covered, found) = sent[0].split_at(HEAD + HEADER_BYTES);
        assert_eq!(found, tag(&to.key_out, covered), "a tag under the key of what goes to node 1");
        assert_eq!(covered[..8], TERMS.first_word(1));
        let word = |at: usize| u64::from_le_bytes(covered[at..at + 8].try_into().expect("8 bytes"));
        assert_eq!(
            (word(8), word(16), word(24)),
            (counter, to.mine, to.theirs),
            "each with a counter of its own"
        );
        let (packet, _) = Packet::parse(&covered[HEAD..]).expect("a packet");
        assert_eq!((packet.kind, packet.to), (PacketKind::ReadMiss, Endpoint::HomeAgent(NodeId(1))));
    }
    assert_eq!(port.counted(Datagrams::Taken), 3);
}

#[test]
fn what_goes_to_a_memory_with_copies_goes_to_the_node_that_serves_it_now() {
    let Some(mut port) = Port::of(Hook::TrafficControl, true) else { return };
    let from = session_of(0, 0);
    // Memory 4 is the second one with copies.
    for (counter, server) in (1..).zip([1, 0, 1]) {
        let server_of =
            |memory| if memory == 4 { Some(server) } else { (memory < 3).then_some(memory as u16) };
        port.loaded.set_servers(|memory| server_of(memory).map(NodeId));
        let (verdict, sent) = port.run(&frame_of(&request(4), &from, 2 * counter));
        assert_eq!((verdict, sent.len()), (verdict::TAKEN, 1));
        let (covered, found) = sent[0].split_at(HEAD + HEADER_BYTES);
        let to = session_of(server, 0);
        assert_eq!(
            (covered[..8].to_vec(), found),
            (TERMS.first_word(server as u8).to_vec(), &tag(&to.key_out, covered)[..])
        );
        let (packet, _) = Packet::parse(&covered[HEAD..]).expect("a packet");
        assert_eq!(packet.to, Endpoint::HomeAgent(NodeId(4)), "which of its memories it is about");
        // A node's own memory is where it was; nobody has memory 5, and node 2 has no port.
        assert_eq!(port.run(&frame_of(&request(1), &from, 2 * counter + 1)).1[0][..8], TERMS.first_word(1));
    }
    for (counter, home) in (100..).zip([5, 2]) {
        let before = port.counted(Datagrams::NoPort);
        let (verdict, sent) = port.run(&frame_of(&request(home), &from, counter));
        assert_eq!((verdict, sent.len(), port.counted(Datagrams::NoPort)), (verdict::TAKEN, 0, before + 1));
    }
}

#[test]
fn no_bit_of_a_datagram_can_be_changed() {
    let Some(mut port) = Port::new() else { return };
    let good = frame_of(&request(1), &session_of(0, 0), 1);
    let mut before = Vec::new();
    port.loaded.state(&mut before);
    for at in AROUND..good.len() {
        for bit in 0..8 {
            let mut frame = good.clone();
            frame[at] ^= 1 << bit;
            let (verdict, sent) = port.run(&frame);
            assert!(sent.is_empty(), "byte {at}, bit {bit}");
            // What names no session of ours, or is no single packet, is for the process to judge.
            let is_named = at < AROUND + 8 || (AROUND + 16..AROUND + HEAD).contains(&at);
            assert!(verdict == verdict::TAKEN || is_named || at < AROUND + HEAD + HEADER_BYTES, "byte {at}");
        }
    }
    let layout = &port.program.layout;
    let arrays = layout.arrays[0].at;
    assert_eq!(port.state[arrays..], before[arrays..], "no register has changed");
    assert_eq!(port.state[layout.sessions..arrays], before[layout.sessions..arrays], "no window has moved");
    assert!(port.counted(Datagrams::WrongTag) > 0);
    assert_eq!(port.run(&good).1.len(), 1, "and the right one is still new");
}

#[test]
fn a_counter_is_taken_once() {
    const SPAN: u64 = 64;
    let Some(mut port) = Port::new() else { return };
    let (from, seed) = (session_of(0, 0), seed());
    let mut dice = Dice::new(seed);
    let (mut seen, mut newest) = (BTreeSet::from([0]), 0);
    for at in 0..4_000 {
        let back = dice.below(SPAN + 20);
        let ahead = if dice.below(50) == 0 { dice.below(300) } else { 10 };
        let counter = (newest + ahead).saturating_sub(back);
        let is_new = counter > newest || newest - counter < SPAN && !seen.contains(&counter);
        let (verdict, sent) = port.run(&frame_of(&request(1), &from, counter));
        assert_eq!(verdict, verdict::TAKEN);
        assert_eq!(sent.len() == 1, is_new, "seed {seed}, datagram {at}: {counter}, the newest is {newest}");
        if is_new {
            seen.insert(counter);
            newest = newest.max(counter);
        }
    }
    assert_eq!(port.counted(Datagrams::Taken) + port.counted(Datagrams::Replayed), 4_000);
}

#[test]
fn what_is_not_for_the_program_goes_on() {
    let Some(mut port) = Port::new() else { return };
    let good = frame_of(&request(1), &session_of(0, 0), 1);
    let mut others = vec![("of another session", frame_of(&request(1), &session_of(0, 1), 1))];
    for (what, at, byte) in [
        ("not IPv4", 13, 6),
        ("with options", 14, 0x46),
        ("a fragment with more behind it", 20, 0x20),
        ("a fragment with others before it", 21, 1),
        ("not UDP", 23, 6),
        ("to another address", 33, 2),
        ("to another port", 37, 1),
        ("of another length", 39, 0),
        ("not of this rack", AROUND, b'X'),
        ("of another version", AROUND + 2, 6),
        ("data", AROUND + 3, 1),
        ("of a node that there is not", AROUND + 4, 3),
        ("of the switch", AROUND + 4, 64),
        ("without a tag", AROUND + 6, 0),
        ("no packet", AROUND + HEAD, b'X'),
    ] {
        let mut frame = good.clone();
        frame[at] = byte;
        others.push((what, frame));
    }
    // Test runs take no frame that ends within the head of IP.
    for length in 34..good.len() {
        others.push(("cut short", good[..length].to_vec()));
    }
    for (what, frame) in &others {
        assert_eq!(port.run(frame), (verdict::PASSED, Vec::new()), "{what}, {} bytes", frame.len());
    }
    let longer = [&good[..], &[0; 8]].concat();
    assert_eq!(port.run(&longer).0, verdict::TAKEN, "what the network adds behind a frame is not part of it");
}

#[test]
fn a_node_without_a_port_gets_nothing_and_that_is_counted() {
    let Some(mut port) = Port::new() else { return };
    let (verdict, sent) = port.run(&frame_of(&request(2), &session_of(0, 0), 1));
    assert_eq!((verdict, sent.len(), port.counted(Datagrams::NoPort)), (verdict::TAKEN, 0, 1));
}

#[test]
fn a_new_life_of_a_node_ends_the_one_before() {
    let Some(mut port) = Port::new() else { return };
    let (old, new) = (session_of(0, 0), session_of(0, 1));
    assert_eq!(port.run(&frame_of(&request(1), &old, 900)).1.len(), 1);
    port.loaded.begin_life(0, &new);
    assert_eq!(port.run(&frame_of(&request(1), &new, 1)).0, verdict::PASSED, "not yet");
    assert_eq!(port.run(&frame_of(&request(1), &old, 901)).1.len(), 1, "the old one still counts");
    port.loaded.switch_life(0);
    assert_eq!(port.run(&frame_of(&request(1), &old, 902)).0, verdict::PASSED);
    assert_eq!(port.run(&frame_of(&request(1), &new, 1)).1.len(), 1, "with counters of its own");
}

/// What a pass takes is printed, for docs/kernel.md: each frame is new, so each is run once.
#[test]
fn a_pass_is_timed_with_its_tags() {
    const RUNS: u64 = 2_000;
    let Some(mut port) = Port::new() else { return };
    let from = session_of(0, 0);
    let mut timed = |what: &str, sends: usize, change: fn(&mut Vec<u8>)| {
        let mut took: Vec<u32> = (0..RUNS)
            .map(|at| {
                let mut frame = frame_of(&request(1), &from, 1 + at);
                change(&mut frame);
                port.loaded.forget_log();
                let run = port.loaded.test_run(&frame, 1).expect("the kernel runs it");
                port.loaded.state(&mut port.state);
                let layout = &port.program.layout;
                let sent = layout.logged(&port.state, datagram::datagram_bytes(HEADER_BYTES)).count();
                assert_eq!((run.verdict, sent), (verdict::TAKEN, sends), "{what}");
                run.nanoseconds
            })
            .collect();
        took.sort_unstable();
        println!("{what}: {} ns", took[took.len() / 2]);
    };
    timed("a wrong tag is found and the packet dropped", 0, |frame| *frame.last_mut().unwrap() ^= 1);
    timed("a request goes on, with a tag checked and a new one", 1, |_| {});
    timed("its counter was seen before", 0, |_| {});
}

/// This program, with the port's state, on the machine that is not the kernel's.
fn machine(port: &Port, program: &KernelProgram) -> check::bytecode::Machine {
    let mut machine = check::bytecode::Machine::new(program);
    let mut state = Vec::new();
    port.loaded.state(&mut state);
    machine.state_mut().copy_from_slice(&state);
    machine
}

#[test]
fn a_pass_is_counted_with_its_tags() {
    let Some(port) = Port::new() else { return };
    let (from, mut machine) = (session_of(0, 0), machine(&port, &port.program));
    let mut counted = |what: &str, frame: &[u8]| {
        let ran = machine.run(frame).expect("it runs");
        assert_eq!(ran.verdict, verdict::TAKEN, "{what}");
        println!("{what}: {} instructions", ran.instructions);
        ran.instructions
    };
    let good = frame_of(&request(1), &from, 1);
    let mut wrong = good.clone();
    *wrong.last_mut().unwrap() ^= 1;
    let dropped = counted("a wrong tag is found and the packet dropped", &wrong);
    let passed = counted("a request goes on, with a tag checked and a new one", &good);
    assert!(dropped < passed);
}

/// The kernel's test runs cannot say that a device took such a tag off.
#[test]
fn what_came_with_the_tag_of_a_virtual_network_goes_on() {
    let Some(port) = Port::new() else { return };
    let mut machine = machine(&port, &port.program);
    let frame = frame_of(&request(1), &session_of(0, 0), 1);
    machine.of_virtual_network = true;
    assert_eq!(machine.run(&frame).expect("it runs").verdict, verdict::PASSED);
    machine.of_virtual_network = false;
    assert_eq!(machine.run(&frame).expect("it runs").verdict, verdict::TAKEN);
}

#[test]
fn what_goes_out_leaves_through_the_port_of_its_node() {
    let Some(mut port) = Port::new() else { return };
    let frame = frame_of(&request(1), &session_of(0, 0), 1);
    // As it is attached: the state has the same layout.
    let as_attached =
        [Hook::TrafficControl, Hook::Driver].map(|hook| machine(&port, &program(hook, Output::Ports, false)));
    let (_, written_down) = port.run(&frame);
    for (mut machine, verdict) in as_attached.into_iter().zip([verdict::TAKEN, verdict::LEAVES]) {
        let ran = machine.run(&frame).expect("it runs");
        let [(device, sent)] = ran.sent.as_slice() else { panic!("one frame: {:?}", ran.sent) };
        assert_eq!((*device, &sent[AROUND..]), (6, &written_down[0][..]), "node 1 is behind device 6");
        assert_eq!(ran.verdict, verdict);
    }
}

/// Nothing of it has happened then: the traffic control takes it as if it had come there first.
#[test]
fn what_may_become_several_packets_goes_on_in_a_driver() {
    let Some(mut port) = Port::of(Hook::Driver, false) else { return };
    let from = session_of(0, 0);
    let mut before = Vec::new();
    port.loaded.state(&mut before);
    for (counter, kind) in (1..).zip([PacketKind::WriteMiss, PacketKind::WriteShared, PacketKind::Purge]) {
        let packet = Packet { kind, event: kind, ..request(1) };
        let (verdict, sent) = port.run(&frame_of(&packet, &from, counter));
        assert_eq!((verdict, sent.len()), (verdict::passed(Hook::Driver), 0), "{kind:?}");
        assert_eq!(port.state, before, "{kind:?}");
    }
    assert_eq!(port.run(&frame_of(&request(1), &from, 1)).1.len(), 1, "and a reader's miss does not");
}
